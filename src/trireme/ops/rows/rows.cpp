#include "trireme/ops/rows/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/ops/aligned.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/rows/row_kernels.h"

namespace trireme::ops {
namespace {

// Rows in parts of about a quarter of a core's cache.
template <class Body>
void each_row(int64_t rows, int64_t columns, Body&& body) {
  const int64_t together = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(columns, 1));
  parallel((rows + together - 1) / together, [&](int64_t part) {
    for (int64_t row = part * together; row < std::min(rows, (part + 1) * together); ++row) body(row);
  });
}

}  // namespace

void layer_norm_forward(int64_t rows, int64_t columns, float epsilon, const float* x, const float* gamma,
                        const float* beta, float* y, float* mean, float* rstd) {
  each_row(rows, columns, [&](int64_t row) {
    internal::layer_norm_row(columns, epsilon, x + row * columns, gamma, beta, y + row * columns, mean + row,
                             rstd + row);
  });
}

// The sums over rows: each part's own, then those in order. How many parts depends on the rows alone.
void layer_norm_backward(int64_t rows, int64_t columns, const float* x, const float* gamma, const float* mean,
                         const float* rstd, const float* d_y, float* d_x, float* d_gamma, float* d_beta) {
  constexpr int64_t kFewestRows = 32, kMostParts = 64;
  const int64_t together = std::max(kFewestRows, (rows + kMostParts - 1) / kMostParts);
  const int64_t parts = (rows + together - 1) / together;
  AlignedFloats sums(2 * parts * columns);
  const auto own = [&](float* wanted, int64_t part, int64_t which) {
    return wanted == nullptr ? nullptr : sums.data() + (2 * part + which) * columns;
  };
  parallel(parts, [&](int64_t part) {
    std::fill_n(sums.data() + 2 * part * columns, 2 * columns, 0.0f);
    for (int64_t row = part * together; row < std::min(rows, (part + 1) * together); ++row) {
      const int64_t i = row * columns;
      internal::layer_norm_row_backward(columns, x + i, gamma, mean[row], rstd[row], d_y + i, d_x + i,
                                        own(d_gamma, part, 0), own(d_beta, part, 1));
    }
  });
  for (const int64_t which : {0, 1}) {
    float* out = which == 0 ? d_gamma : d_beta;
    if (out == nullptr) continue;
    std::fill_n(out, columns, 0.0f);
    for (int64_t part = 0; part < parts; ++part) internal::add_row(columns, own(out, part, which), out);
  }
}

void softmax_forward(int64_t rows, int64_t columns, const float* x, float* y) {
  each_row(rows, columns, [&](int64_t row) { internal::softmax_row(columns, x + row * columns, y + row * columns); });
}

void softmax_backward(int64_t rows, int64_t columns, const float* y, const float* d_y, float* d_x) {
  each_row(rows, columns, [&](int64_t row) {
    const int64_t i = row * columns;
    internal::softmax_row_backward(columns, y + i, d_y + i, d_x + i);
  });
}

CrossEntropyResult cross_entropy_forward(const CrossEntropy& shape, const float* x, const int64_t* targets,
                                         float* sums) {
  const int64_t classes = shape.classes;
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (targets[row] != shape.ignored && (targets[row] < 0 || targets[row] >= classes))
      throw DataError(fmt::format("cross-entropy: the target of row {} is {}; there are {} classes, from 0 on", row,
                                  targets[row], classes));
  }
  std::vector<double> losses(static_cast<std::size_t>(shape.rows));
  each_row(shape.rows, classes, [&](int64_t row) {
    const float* own = x + row * classes;
    const auto [log_exp, plain] = internal::row_sums(classes, own);
    sums[row] = log_exp;
    if (targets[row] == shape.ignored) return;
    const double s = static_cast<double>(shape.smoothing), l = static_cast<double>(log_exp);
    double loss = (1 - s) * (l - static_cast<double>(own[targets[row]]));
    if (s > 0) loss += s * (l - static_cast<double>(plain) / static_cast<double>(classes));
    losses[static_cast<std::size_t>(row)] = loss;
  });
  CrossEntropyResult result;
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (targets[row] == shape.ignored) continue;
    result.sum += losses[static_cast<std::size_t>(row)];
    ++result.count;
  }
  return result;
}

void cross_entropy_backward(const CrossEntropy& shape, const float* x, const int64_t* targets, const float* sums,
                            float scale, float* d_x) {
  const int64_t classes = shape.classes;
  each_row(shape.rows, classes, [&](int64_t row) {
    float* own = d_x + row * classes;
    if (targets[row] == shape.ignored) {
      std::fill_n(own, classes, 0.0f);
      return;
    }
    internal::row_exponentials(classes, x + row * classes, sums[row], scale,
                               -scale * shape.smoothing / static_cast<float>(classes), own);
    own[targets[row]] -= scale * (1 - shape.smoothing);
  });
}

void embedding_forward(int64_t rows, int64_t columns, int64_t count, const float* table, const int64_t* indices,
                       float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    if (indices[row] < 0 || indices[row] >= count)
      throw DataError(
          fmt::format("embedding: index {} of row {} is outside of the table's {} rows", indices[row], row, count));
  }
  each_row(rows, columns,
           [&](int64_t row) { std::copy_n(table + indices[row] * columns, columns, y + row * columns); });
}

// A part has some of the table's rows and looks through all indices for its own: no two write one row, and each row's
// sum is in order.
void embedding_backward(int64_t rows, int64_t columns, int64_t count, const int64_t* indices, const float* d_y,
                        float* d_table, int64_t padding) {
  const int64_t parts = std::min<int64_t>(count, 4 * threads());
  parallel(parts, [&](int64_t part) {
    const int64_t first = count * part / parts, last = count * (part + 1) / parts;
    std::memset(d_table + first * columns, 0, static_cast<std::size_t>((last - first) * columns) * sizeof(float));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t index = indices[row];
      if (index < first || index >= last || index == padding) continue;
      internal::add_row(columns, d_y + row * columns, d_table + index * columns);
    }
  });
}

}  // namespace trireme::ops

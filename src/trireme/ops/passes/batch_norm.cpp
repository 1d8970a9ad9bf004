#include "trireme/ops/passes/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "trireme/ops/parallel.h"
#include "trireme/ops/passes/row_kernels.h"

namespace trireme::ops {
namespace {

// Rows laid together so that their width suits the kernels: `together` rows are one of `width` floats. What is left
// over, fewer than `together` rows, is brought to a full width by zeros in `rest`'s place.
struct Folded {
  explicit Folded(RowShape of) : shape(of) {
    const int64_t channels = std::max<int64_t>(of.channels, 1);
    together = rows::kLane / std::gcd(channels, rows::kLane);
    while (together * channels < 4 * rows::kLane) together *= 2;
    width = together * channels;
    count = of.rows / together;
    rest = (of.rows - count * together) * channels;
    // About 128 KB a part, whatever the number of threads.
    part_rows = std::max<int64_t>(1, 32768 / width);
    parts = (count + part_rows - 1) / part_rows;
  }
  // One more part where rows are left over.
  int64_t all_parts() const { return parts + (rest > 0 ? 1 : 0); }
  bool is_rest(int64_t part) const { return part == parts; }
  int64_t begin(int64_t part) const { return part * part_rows * width; }
  int64_t rows_of(int64_t part) const { return std::min(part_rows, count - part * part_rows); }

  std::vector<float> spread(const float* of_channel) const {
    std::vector<float> all(static_cast<std::size_t>(width));
    for (int64_t k = 0; k < together; ++k) {
      std::copy_n(of_channel, shape.channels, all.begin() + static_cast<std::ptrdiff_t>(k * shape.channels));
    }
    return all;
  }

  RowShape shape;
  int64_t together, width, count, rest, part_rows, parts;
};

// What is left over as one row of full width: past the end `fill`, of a width, or zeros.
std::vector<float> last_row(const Folded& at, const float* from, const float* fill = nullptr) {
  std::vector<float> row(static_cast<std::size_t>(at.width));
  if (fill) std::copy_n(fill, at.width, row.begin());
  std::copy_n(from + at.begin(0) + at.count * at.width, at.rest, row.begin());
  return row;
}

// Adds two sums a channel over all parts in their order; add(part's begin, rows, sums) or, for the rest, rest(sums).
template <class Part, class Rest>
void two_sums(const Folded& at, const Part& part_sums, const Rest& rest_sums, std::span<double> first,
              std::span<double> second) {
  const auto width = static_cast<std::size_t>(at.width);
  std::vector<float> sums(2 * width * static_cast<std::size_t>(at.all_parts()));
  parallel(at.all_parts(), [&](int64_t part) {
    float* mine = sums.data() + 2 * width * static_cast<std::size_t>(part);
    if (at.is_rest(part)) {
      rest_sums(mine, mine + width);
    } else {
      part_sums(at.begin(part), at.rows_of(part), mine, mine + width);
    }
  });
  std::ranges::fill(first, 0);
  std::ranges::fill(second, 0);
  const auto channels = static_cast<std::size_t>(at.shape.channels);
  for (const float* mine = sums.data(); mine != sums.data() + sums.size(); mine += 2 * width) {
    for (std::size_t begin = 0; begin < width; begin += channels) {
      for (std::size_t c = 0; c < channels; ++c) {
        first[c] += mine[begin + c];
        second[c] += mine[width + begin + c];
      }
    }
  }
}

}  // namespace

void batch_statistics(RowShape shape, const float* x, std::span<double> mean, std::span<double> variance) {
  if (shape.channels == 0) return;
  const Folded at(shape);
  // Apart from the first row: then squares of numbers far from zero do not swallow their differences.
  const auto base = at.spread(x);
  two_sums(
      at,
      [&](int64_t begin, int64_t rows, float* sum, float* square) {
        rows::add_moments(x + begin, base.data(), rows, at.width, sum, square);
      },
      [&](float* sum, float* square) {
        rows::add_moments(last_row(at, x, base.data()).data(), base.data(), 1, at.width, sum, square);
      },
      mean, variance);
  const auto count = static_cast<double>(shape.rows);
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double apart = mean[c] / count;
    variance[c] = std::max(0.0, variance[c] / count - apart * apart);
    mean[c] = apart + static_cast<double>(base[c]);
  }
}

void normalize(RowShape shape, const float* x, const Normalization& by, float* y) {
  if (shape.size() == 0) return;
  const Folded at(shape);
  const auto scale = at.spread(by.scale), shift = at.spread(by.shift);
  parallel(at.all_parts(), [&](int64_t part) {
    if (at.is_rest(part)) {
      const auto in = last_row(at, x);
      const auto add = by.add ? last_row(at, by.add) : std::vector<float>();
      std::vector<float> out(static_cast<std::size_t>(at.width));
      rows::normalize(in.data(), scale.data(), shift.data(), by.add ? add.data() : nullptr, by.relu, 1, at.width,
                      out.data());
      std::copy_n(out.begin(), at.rest, y + at.count * at.width);
      return;
    }
    const int64_t begin = at.begin(part);
    rows::normalize(x + begin, scale.data(), shift.data(), by.add ? by.add + begin : nullptr, by.relu, at.rows_of(part),
                    at.width, y + begin);
  });
}

void norm_sums(RowShape shape, const NormGradients& of, const float* mean, std::span<double> sums,
               std::span<double> products) {
  if (shape.channels == 0) return;
  const Folded at(shape);
  const auto means = at.spread(mean);
  two_sums(
      at,
      [&](int64_t begin, int64_t rows, float* sum, float* product) {
        rows::add_gradients(of.gradient + begin, of.output ? of.output + begin : nullptr, of.x + begin, means.data(),
                            rows, at.width, sum, product);
      },
      [&](float* sum, float* product) {
        const auto output = of.output ? last_row(at, of.output) : std::vector<float>();
        rows::add_gradients(last_row(at, of.gradient).data(), of.output ? output.data() : nullptr,
                            last_row(at, of.x).data(), means.data(), 1, at.width, sum, product);
      },
      sums, products);
}

void norm_backward(RowShape shape, const NormGradients& of, const NormSlopes& by, float* dx, float* add) {
  if (shape.size() == 0) return;
  const Folded at(shape);
  const auto scale = at.spread(by.scale), mean = at.spread(by.mean), slope = at.spread(by.slope),
             offset = at.spread(by.offset);
  const rows::Slopes all{scale.data(), mean.data(), slope.data(), offset.data()};
  parallel(at.all_parts(), [&](int64_t part) {
    if (at.is_rest(part)) {
      const auto output = of.output ? last_row(at, of.output) : std::vector<float>();
      std::vector<float> out(static_cast<std::size_t>(at.width)), added(out.size());
      rows::backward(last_row(at, of.gradient).data(), of.output ? output.data() : nullptr, last_row(at, of.x).data(),
                     all, 1, at.width, out.data(), add ? added.data() : nullptr);
      std::copy_n(out.begin(), at.rest, dx + at.count * at.width);
      if (add) std::copy_n(added.begin(), at.rest, add + at.count * at.width);
      return;
    }
    const int64_t begin = at.begin(part);
    rows::backward(of.gradient + begin, of.output ? of.output + begin : nullptr, of.x + begin, all, at.rows_of(part),
                   at.width, dx + begin, add ? add + begin : nullptr);
  });
}

void relu_backward(RowShape shape, const float* gradient, const float* output, float* masked, float* sums) {
  if (shape.channels == 0) return;
  const Folded at(shape);
  const auto width = static_cast<std::size_t>(at.width);
  std::vector<float> parts(width * static_cast<std::size_t>(at.all_parts()));
  parallel(at.all_parts(), [&](int64_t part) {
    float* mine = parts.data() + width * static_cast<std::size_t>(part);
    if (!at.is_rest(part)) {
      const int64_t begin = at.begin(part);
      rows::mask_and_add(gradient + begin, output ? output + begin : nullptr, at.rows_of(part), at.width,
                         output ? masked + begin : nullptr, mine);
      return;
    }
    const auto out = output ? last_row(at, output) : std::vector<float>();
    std::vector<float> into(output ? width : 0);
    rows::mask_and_add(last_row(at, gradient).data(), output ? out.data() : nullptr, 1, at.width, into.data(), mine);
    if (output) std::copy_n(into.begin(), at.rest, masked + at.count * at.width);
  });
  if (!sums) return;
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<double> all(channels);
  for (std::size_t i = 0; i < parts.size(); ++i) all[i % channels] += parts[i];
  std::ranges::copy(all, sums);
}

void normalization_of(std::span<const double> mean, std::span<const double> variance, double epsilon,
                      const float* weight, const float* bias, std::span<float> scale, std::span<float> shift) {
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const double by = (weight ? static_cast<double>(weight[c]) : 1) / std::sqrt(variance[c] + epsilon);
    scale[c] = static_cast<float>(by);
    shift[c] = static_cast<float>((bias ? static_cast<double>(bias[c]) : 0) - mean[c] * by);
  }
}

void slopes_of(std::span<const double> variance, double epsilon, int64_t rows, std::span<const double> sums,
               std::span<const double> products, std::span<const float> scale, std::span<float> slope,
               std::span<float> offset) {
  const auto count = static_cast<double>(rows);
  for (std::size_t c = 0; c < slope.size(); ++c) {
    const double by = static_cast<double>(scale[c]);
    slope[c] = static_cast<float>(-by * products[c] / (count * (variance[c] + epsilon)));
    offset[c] = static_cast<float>(-by * sums[c] / count);
  }
}

}  // namespace trireme::ops

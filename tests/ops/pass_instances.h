// Passes over memory as instances of random shapes.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/ops/instance.h"
#include "trireme/ops/elementwise/activation.h"
#include "trireme/ops/passes/batch_norm.h"
#include "trireme/ops/passes/pool.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::ops {
namespace differences_test {

inline Instance pooling(bool largest, Sizes& size) {
  const auto side = [&size] {
    if (size.maybe()) return PoolSide::adaptive(size.upto(9), size.upto(5));
    const int64_t kernel = size.upto(3), padding = kernel / 2;
    return PoolSide::windows(kernel + size.upto(7), kernel, size.upto(3), padding);
  };
  const PoolShape shape{size.batch(3), size.upto(19), side(), side()};
  const int64_t divisor = size.maybe() ? 0 : size.upto(5);
  const auto forward = [=](const Many& in, std::vector<uint8_t>& chosen) {
    Floats y(at(shape.output_size()));
    chosen.resize(y.size());
    if (largest) {
      max_pool(shape, in[0].data(), /*relu=*/true, y.data(), chosen.data());
    } else {
      mean_pool(shape, in[0].data(), divisor, y.data());
    }
    return y;
  };
  return {{shape.input_size()},
          [=](const Many& in) {
            std::vector<uint8_t> chosen;
            return forward(in, chosen);
          },
          [=](const Many& in, const Floats& g) {
            std::vector<uint8_t> chosen;
            forward(in, chosen);
            Floats dx(in[0].size(), NAN);
            if (largest) {
              max_pool_backward(shape, g.data(), chosen.data(), dx.data());
            } else {
              mean_pool_backward(shape, g.data(), divisor, dx.data());
            }
            return Many{dx};
          }};
}

// Of x, weight, bias and the skip connection.
inline Instance batch_norm(bool of_batch, Sizes& size) {
  const RowShape shape{of_batch ? 1 + size.upto(9) : size.batch(9), size.upto(19)};
  const bool relu = size.maybe();
  struct Run {
    std::vector<double> mean, variance;
    Floats scale, shift, y;
  };
  const auto forward = [=](const Many& in) {
    const auto channels = at(shape.channels);
    Run it{std::vector<double>(channels, 0.25), std::vector<double>(channels, 2), Floats(channels), Floats(channels),
           Floats(at(shape.size()))};
    if (of_batch) batch_statistics(shape, in[0].data(), it.mean, it.variance);
    normalization_of(it.mean, it.variance, 1e-2, in[1].data(), in[2].data(), it.scale, it.shift);
    Floats skip = in[3];  // far from where ReLU bends
    for (std::size_t i = 0; i < skip.size(); ++i) skip[i] += i % 3 == 0 ? -8 : 8;
    normalize(shape, in[0].data(), {it.scale.data(), it.shift.data(), skip.data(), relu}, it.y.data());
    return it;
  };
  return {
      {shape.size(), shape.channels, shape.channels, shape.size()},
      [=](const Many& in) { return forward(in).y; },
      [=](const Many& in, const Floats& g) {
        const Run it = forward(in);
        const auto channels = at(shape.channels);
        const Floats means(it.mean.begin(), it.mean.end());
        const NormGradients of{relu ? it.y.data() : nullptr, in[0].data(), g.data()};
        std::vector<double> sums(channels), products(channels);
        Floats slope(channels), offset(channels), dx(in[0].size()), dskip(in[0].size()), dweight(channels);
        norm_sums(shape, of, means.data(), sums, products);
        if (of_batch) slopes_of(it.variance, 1e-2, shape.rows, sums, products, it.scale, slope, offset);
        norm_backward(shape, of, {it.scale.data(), means.data(), slope.data(), offset.data()}, dx.data(), dskip.data());
        for (std::size_t c = 0; c < channels; ++c)
          dweight[c] = static_cast<float>(products[c] / std::sqrt(it.variance[c] + 1e-2));
        return Many{dx, dweight, Floats(sums.begin(), sums.end()), dskip};
      }};
}

inline Instance layer_norm(Sizes& size) {
  const int64_t rows = size.batch(9), columns = 1 + size.upto(40);
  const auto forward = [=](const Many& in, Floats& mean, Floats& inverse) {
    Floats y(at(rows * columns));
    mean.resize(at(rows)), inverse.resize(at(rows));
    layer_norm_forward(rows, columns, 1e-2f, in[0].data(), in[1].data(), in[2].data(), y.data(), mean.data(),
                       inverse.data());
    return y;
  };
  return {{rows * columns, columns, columns},
          [=](const Many& in) {
            Floats mean, inverse;
            return forward(in, mean, inverse);
          },
          [=](const Many& in, const Floats& g) {
            Floats mean, inverse;
            forward(in, mean, inverse);
            Many d{Floats(in[0].size(), NAN), Floats(at(columns), NAN), Floats(at(columns), NAN)};
            layer_norm_backward(rows, columns, in[0].data(), in[1].data(), mean.data(), inverse.data(), g.data(),
                                d[0].data(), d[1].data(), d[2].data());
            return d;
          }};
}

inline Instance softmax(Sizes& size) {
  const int64_t rows = size.batch(9), columns = size.upto(40);
  const auto forward = [=](const Many& in) {
    Floats y(in[0].size());
    softmax_forward(rows, columns, in[0].data(), y.data());
    return y;
  };
  return {{rows * columns}, forward, [=](const Many& in, const Floats& g) {
            Floats dx(in[0].size(), NAN);
            softmax_backward(rows, columns, forward(in).data(), g.data(), dx.data());
            return Many{dx};
          }};
}

inline Instance cross_entropy(Sizes& size) {
  const CrossEntropy shape{size.batch(9), size.upto(40), size.maybe() ? 0.0f : 0.2f, -100};
  std::vector<int64_t> targets;
  for (int64_t row = 0; row < shape.rows; ++row)
    targets.push_back(size.upto(5) == 1 ? -100 : size.below(shape.classes));
  return {
      {shape.rows * shape.classes},
      [=](const Many& in) {
        Floats sums(at(shape.rows));
        return Floats{static_cast<float>(cross_entropy_forward(shape, in[0].data(), targets.data(), sums.data()).sum)};
      },
      [=](const Many& in, const Floats& g) {
        Floats sums(at(shape.rows)), dx(in[0].size(), NAN);
        cross_entropy_forward(shape, in[0].data(), targets.data(), sums.data());
        cross_entropy_backward(shape, in[0].data(), targets.data(), sums.data(), g[0], dx.data());
        return Many{dx};
      }};
}

inline Instance activation(Activation kind, Sizes& size) {
  const int64_t rows = size.batch(9), columns = size.upto(40);
  return {{rows * columns, columns},
          [=](const Many& in) {
            Floats y(at(rows * columns));
            bias_activation_forward(kind, rows, columns, in[0].data(), in[1].data(), nullptr, y.data());
            return y;
          },
          [=](const Many& in, const Floats& g) {
            Floats sum(in[0].size()), y(in[0].size());
            bias_activation_forward(kind, rows, columns, in[0].data(), in[1].data(), sum.data(), y.data());
            Many d{Floats(in[0].size(), NAN), Floats(at(columns), NAN)};
            bias_activation_backward(kind, rows, columns, sum.data(), g.data(), d[0].data(), d[1].data());
            return d;
          }};
}

inline Instance dropped(Sizes& size) {
  const int64_t n = size.batch(99);
  const auto run = [n](const Floats& x, const float* residual) {
    Floats y(x.size(), NAN);
    dropout(n, 0.3f, 9, x.data(), residual, y.data());
    return y;
  };
  return {{n, n},
          [=](const Many& in) { return run(in[0], in[1].data()); },
          [=](const Many&, const Floats& g) {
            return Many{run(g, nullptr), g};
          }};
}

}  // namespace differences_test
}  // namespace trireme::ops

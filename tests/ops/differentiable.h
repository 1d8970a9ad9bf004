// Every operator and each of its implementations as a function and its gradients, over random shapes: odd sizes, one
// channel, groups, empty batches. A new algorithm of a family is in the list by being in the family's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trireme/ops/attention/attention.h"
#include "trireme/ops/conv/conv.h"
#include "trireme/ops/elementwise/activation.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/passes/batch_norm.h"
#include "trireme/ops/passes/pool.h"
#include "trireme/ops/recurrent/recurrent.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::ops {
namespace differences_test {

using Floats = std::vector<float>;
using Many = std::vector<Floats>;

inline std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

// Sizes by chance: often 1, mostly odd; `most` at times, and 0 for a batch.
class Sizes {
 public:
  explicit Sizes(std::mt19937& random) : random_(random) {}
  int64_t upto(int64_t most) {
    const int64_t any = 1 + static_cast<int64_t>(random_() % static_cast<unsigned>(most));
    return random_() % 4 == 0 ? 1 : std::min(most, any | 1);
  }
  int64_t batch(int64_t most) { return random_() % 6 == 0 ? 0 : upto(most); }
  bool maybe() { return random_() % 2 == 0; }
  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<unsigned>(count)); }

 private:
  std::mt19937& random_;
};

// One operator and shape.
struct Instance {
  std::vector<int64_t> inputs;  // how many numbers each has
  std::function<Floats(const Many& inputs)> forward;
  // Of each input; empty where there is no gradient.
  std::function<Many(const Many& inputs, const Floats& d_output)> backward;
};

struct Operator {
  std::string name;
  std::function<Instance(Sizes&)> make;
  double tolerance = 1e-2;
  // Where one input has kinks, it is drawn apart from them and the others after it are 0.
  bool kinks = false;
  float step = 1e-2f;  // of the differences; where the output is linear in each input, any
};

inline Floats workspace_run(const ConvAlgorithm& algorithm, const ConvShape& shape, Pass pass, Many tensors) {
  const int64_t size = algorithm.cost(shape, pass).workspace;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, at((size + 127) / 64 * 64))), &std::free);
  algorithm.run(shape, pass, {.input = tensors[0].data(), .weight = tensors[1].data(), .output = tensors[2].data()},
                {memory.get(), at(size)});
  return tensors[pass == Pass::forward ? 2 : pass == Pass::data ? 0 : 1];
}

inline bool takes_all(const ConvAlgorithm& algorithm, const ConvShape& shape) {
  for (std::size_t side = 0; side < 2; ++side) {
    const int64_t length = (side == 0 ? shape.height : shape.width) + 2 * shape.padding[side];
    if (length <= shape.dilation[side] * (shape.kernel[side] - 1)) return false;
  }
  return algorithm.takes(shape, Pass::forward) && algorithm.takes(shape, Pass::data) &&
         algorithm.takes(shape, Pass::weights);
}

inline Instance convolution(const ConvAlgorithm& algorithm, Sizes& size) {
  for (;;) {
    ConvShape shape{.batch = size.batch(3), .height = size.upto(11), .width = size.upto(11)};
    const bool plain = size.maybe();  // what the fast ones take
    shape.groups = plain ? 1 : size.upto(3);
    shape.in_channels = shape.groups * size.upto(5);
    shape.out_channels = shape.groups * size.upto(7);
    for (std::size_t side = 0; side < 2; ++side) {
      shape.kernel[side] = plain ? 3 : size.upto(5);
      shape.stride[side] = plain ? 1 : size.upto(3);
      shape.padding[side] = size.upto(3) - 1;
      shape.dilation[side] = plain ? 1 : size.upto(2);
    }
    if (!takes_all(algorithm, shape)) continue;
    const auto like = [shape] {
      return Many{Floats(at(shape.input_size())), Floats(at(shape.weight_size())), Floats(at(shape.output_size()))};
    };
    return {{shape.input_size(), shape.weight_size()},
            [=, &algorithm](const Many& in) {
              return workspace_run(algorithm, shape, Pass::forward, {in[0], in[1], like()[2]});
            },
            [=, &algorithm](const Many& in, const Floats& g) {
              return Many{workspace_run(algorithm, shape, Pass::data, {like()[0], in[1], g}),
                          workspace_run(algorithm, shape, Pass::weights, {in[0], like()[1], g})};
            }};
  }
}

inline Instance product(const MatmulAlgorithm& algorithm, Sizes& size) {
  const int64_t m = size.batch(19), n = size.upto(40), k = size.upto(33);
  const auto run = [&algorithm](int64_t rows, int64_t columns, int64_t inner, Matrix a, Matrix b) {
    Floats c(at(rows * columns));
    if (!algorithm.takes(rows, columns, inner)) return c;
    algorithm.run({rows, columns, inner, a, b, c.data(), columns, false, {}});
    return c;
  };
  return {{m * k, k * n},
          [=](const Many& in) {
            return run(m, n, k, {in[0].data(), k}, {in[1].data(), n});
          },
          [=](const Many& in, const Floats& g) {
            return Many{run(m, k, n, {g.data(), n}, {in[1].data(), n, true}),
                        run(k, n, m, {in[0].data(), k, true}, {g.data(), n})};
          }};
}

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

inline Instance embedding(Sizes& size) {
  const int64_t rows = size.batch(70), columns = size.upto(19), count = size.upto(30);
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < rows; ++row) indices.push_back(size.below(count));
  return {{count * columns},
          [=](const Many& in) {
            Floats y(at(rows * columns));
            embedding_forward(rows, columns, count, in[0].data(), indices.data(), y.data());
            return y;
          },
          [=](const Many& in, const Floats& g) {
            Floats d(in[0].size(), NAN);
            embedding_backward(rows, columns, count, indices.data(), g.data(), d.data());
            return Many{d};
          }};
}

inline Instance attention(bool causal, float dropped, Sizes& size) {
  AttentionShape shape{.batch = size.batch(2), .heads = size.upto(3), .queries = size.upto(71)};
  shape.keys = causal ? shape.queries : size.upto(71);
  shape.dim = size.upto(9);
  shape.causal = causal;
  shape.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
  shape.dropout = dropped;
  shape.seed = 5;
  const int64_t row = shape.heads * shape.dim;
  const auto view = [=](auto* x, int64_t length) { return HeadsView{x, length * row, shape.dim, row}; };
  const auto forward = [=](const Many& in, Floats& sums) {
    Floats y(in[0].size());
    sums.resize(at(shape.sums_size()));
    attention_forward(shape, {view(in[0].data(), shape.queries), view(in[1].data(), shape.keys),
                              view(in[2].data(), shape.keys), view(y.data(), shape.queries), sums.data()});
    return y;
  };
  return {{shape.batch * shape.queries * row, shape.batch * shape.keys * row, shape.batch * shape.keys * row},
          [=](const Many& in) {
            Floats sums;
            return forward(in, sums);
          },
          [=](const Many& in, const Floats& g) {
            Floats sums;
            const Floats y = forward(in, sums);
            Many d{Floats(in[0].size(), NAN), Floats(in[1].size(), NAN), Floats(in[2].size(), NAN)};
            attention_backward(shape, {view(in[0].data(), shape.queries), view(in[1].data(), shape.keys),
                                       view(in[2].data(), shape.keys), view(y.data(), shape.queries), sums.data(),
                                       view(g.data(), shape.queries), view(d[0].data(), shape.queries),
                                       view(d[1].data(), shape.keys), view(d[2].data(), shape.keys)});
            return d;
          }};
}

// Of the input, h0, c0 and each layer's weights and biases.
inline Instance recurrent(RecurrentKind kind, Sizes& size) {
  RecurrentShape shape{.kind = kind, .layers = size.upto(3), .input = size.upto(9), .hidden = size.upto(9)};
  shape.steps = size.upto(7);
  shape.batch = size.upto(5);
  const bool lstm = kind == RecurrentKind::lstm;
  const int64_t all = shape.gates() * shape.hidden;
  std::vector<int64_t> sizes{shape.input_size(), shape.state_size(), lstm ? shape.state_size() : 0};
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const int64_t one : {all * shape.features(layer), all * shape.hidden, all, all}) sizes.push_back(one);
  }
  const auto weights_of = [=](auto& of, auto weights) {
    for (std::size_t k = 3; k < of.size(); k += 4)
      weights.push_back({of[k].data(), of[k + 1].data(), of[k + 2].data(), of[k + 3].data()});
    return weights;
  };
  const auto forward = [=](const Many& in, Floats& saved) {
    Floats y(at(shape.output_size()));
    saved.resize(at(shape.saved_size()));
    recurrent_forward(shape, weights_of(in, std::vector<RecurrentWeights>()),
                      {.input = in[0].data(),
                       .h0 = in[1].data(),
                       .c0 = lstm ? in[2].data() : nullptr,
                       .output = y.data(),
                       .saved = saved.data()});
    return y;
  };
  return {sizes,
          [=](const Many& in) {
            Floats saved;
            return forward(in, saved);
          },
          [=](const Many& in, const Floats& g) {
            Floats saved, workspace(at(shape.workspace_size()));
            const Floats y = forward(in, saved);
            Many d;
            for (const Floats& x : in) d.emplace_back(x.size(), NAN);
            recurrent_backward(shape, weights_of(in, std::vector<RecurrentWeights>()),
                               weights_of(d, std::vector<RecurrentGradients>()),
                               {.input = in[0].data(),
                                .h0 = in[1].data(),
                                .c0 = lstm ? in[2].data() : nullptr,
                                .output = y.data(),
                                .saved = saved.data(),
                                .d_output = g.data(),
                                .d_input = d[0].data(),
                                .d_h0 = d[1].data(),
                                .d_c0 = lstm ? d[2].data() : nullptr,
                                .workspace = workspace.data()});
            return d;
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

inline std::vector<Operator> operators() {
  std::vector<Operator> all;
  const auto tolerance_of = [](Accuracy accuracy) { return std::max(1e-3, 3 * tolerance(accuracy)); };
  for (const ConvAlgorithm* it : conv_algorithms())
    all.push_back({"convolution by " + std::string(it->name()), [it](Sizes& s) { return convolution(*it, s); },
                   tolerance_of(it->accuracy()), false, 1});
  for (const MatmulAlgorithm* it : matmul_algorithms())
    all.push_back({"product by " + std::string(it->name()), [it](Sizes& s) { return product(*it, s); },
                   tolerance_of(it->accuracy()), false, 1});
  for (const Activation it : kActivations)
    all.push_back({"activation " + std::string(name(it)), [it](Sizes& s) { return activation(it, s); }, 1e-2,
                   it == Activation::relu});
  for (const bool causal : {false, true}) {
    for (const float share : {0.0f, 0.4f})
      all.push_back({std::string("attention") + (causal ? ", causal" : "") + (share > 0 ? ", with dropout" : ""),
                     [=](Sizes& s) { return attention(causal, share, s); }});
  }
  all.push_back({"max pooling", [](Sizes& s) { return pooling(true, s); }, 1e-2, true});
  all.push_back({"mean pooling", [](Sizes& s) { return pooling(false, s); }, 1e-3, false, 1});
  all.push_back({"batch norm of the batch", [](Sizes& s) { return batch_norm(true, s); }});
  all.push_back({"batch norm of constants", [](Sizes& s) { return batch_norm(false, s); }});
  all.push_back({"layer norm", layer_norm});
  all.push_back({"softmax", softmax});
  all.push_back({"cross-entropy", cross_entropy});
  all.push_back({"embedding", embedding, 1e-3, false, 1});
  all.push_back({"lstm", [](Sizes& s) { return recurrent(RecurrentKind::lstm, s); }});
  all.push_back({"gru", [](Sizes& s) { return recurrent(RecurrentKind::gru, s); }});
  all.push_back({"dropout", dropped, 1e-3, false, 1});
  return all;
}

}  // namespace differences_test
}  // namespace trireme::ops

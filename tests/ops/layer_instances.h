// Layers with weights, and attention, as instances of random shapes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "tests/ops/instance.h"
#include "trireme/ops/attention/attention.h"
#include "trireme/ops/conv/conv.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/recurrent/recurrent.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::ops {
namespace differences_test {

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

}  // namespace differences_test
}  // namespace trireme::ops

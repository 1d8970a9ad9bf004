#include "trireme/cli/torch/bench/libtorch_peer.h"

#include <torch/torch.h>
#include <torch/version.h>

#include <cmath>
#include <limits>
#include <memory>

#include "trireme/ops/parallel.h"

namespace trireme::bench {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

Tensor values(at::IntArrayRef sizes) { return torch::rand(sizes) - 0.5; }
Tensor leaf(Tensor x) { return x.set_requires_grad(true); }
Tensor channels_last(Tensor x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }

// A function of some leaves, forward, or the gradients of all leaves by autograd, from what one forward pass kept.
using Function = std::function<Tensor(const Tensors&)>;
std::vector<Contender> by_autograd(std::string name, Tensors leaves, Function function, ops::Pass pass) {
  for (Tensor& each : leaves) each = leaf(each);
  if (pass == ops::Pass::forward) {
    return {{std::move(name), 0, [leaves = std::move(leaves), function = std::move(function)] { function(leaves); }}};
  }
  const Tensor y = function(leaves);
  const Tensor d_y = y.dim() == 0 ? torch::ones_like(y) : torch::rand_like(y);
  return {{std::move(name), 0,
           [leaves = std::move(leaves), y, d_y] { torch::autograd::grad({y}, leaves, {d_y}, /*retain_graph=*/true); }}};
}

std::vector<Contender> torch_conv(const OpShape& of, ops::Pass pass) {
  const auto& it = std::get<ops::ConvShape>(of);
  std::vector<Contender> all;
  for (const bool last : {false, true}) {
    const auto laid = [&](const Tensor& x) { return last ? channels_last(x) : x; };
    const Tensor x = laid(values({it.batch, it.in_channels, it.height, it.width}));
    const Tensor weight = laid(values({it.out_channels, it.in_channels / it.groups, it.kernel[0], it.kernel[1]}));
    const Tensor d_y = laid(values({it.batch, it.out_channels, it.out_height(), it.out_width()}));
    const auto run = [=] {
      const c10::NoGradGuard plain;
      if (pass == ops::Pass::forward) {
        at::conv2d(x, weight, {}, it.stride, it.padding, it.dilation, it.groups);
      } else {
        const bool data = pass == ops::Pass::data;
        at::convolution_backward(d_y, x, weight, at::OptionalIntArrayRef(), it.stride, it.padding, it.dilation, false,
                                 {0, 0}, it.groups, {data, !data, false});
      }
    };
    all.push_back({last ? "conv2d channels last" : "conv2d", 0, run});
  }
  return all;
}

std::vector<Contender> torch_linear(const OpShape& of, ops::Pass pass) {
  const auto& at = std::get<LinearShape>(of);
  const Tensor x = values({at.m, at.k}), weight = values({at.n, at.k}), y = values({at.m, at.n});
  return {{"linear", 0, [=] {
             const c10::NoGradGuard plain;
             if (pass == ops::Pass::forward) {
               at::linear(x, weight);
             } else if (pass == ops::Pass::data) {
               at::mm(y, weight);
             } else {
               at::mm(y.t(), x);
             }
           }}};
}

std::vector<Contender> torch_recurrent(const OpShape& of, ops::Pass pass) {
  const auto& it = std::get<ops::RecurrentShape>(of);
  const int64_t all = it.gates() * it.hidden;
  Tensors leaves{values({it.steps, it.batch, it.input})};
  for (int64_t layer = 0; layer < it.layers; ++layer) {
    for (const Tensor& each :
         {values({all, it.features(layer)}), values({all, it.hidden}), values({all}), values({all})})
      leaves.push_back(each * 0.2);
  }
  const Tensor start = torch::zeros({it.layers, it.batch, it.hidden});
  const bool lstm = it.kind == ops::RecurrentKind::lstm;
  const int64_t layers = it.layers;
  const Function function = [=](const Tensors& x) {
    const Tensors weights(x.begin() + 1, x.end());
    if (!lstm) return std::get<0>(at::gru(x[0], start, weights, true, layers, 0, true, false, false));
    return std::get<0>(at::lstm(x[0], {start, start}, weights, true, layers, 0, true, false, false));
  };
  return by_autograd(lstm ? "lstm" : "gru", std::move(leaves), function, pass);
}

std::vector<Contender> torch_attention(const OpShape& of, ops::Pass pass) {
  const auto& it = std::get<ops::AttentionShape>(of);
  const auto heads = [&](int64_t length) {
    return values({it.batch, length, it.heads, it.dim}).transpose(1, 2).detach();
  };
  const double dropout = static_cast<double>(it.dropout);
  const bool causal = it.causal;
#if TORCH_VERSION_MAJOR >= 2
  const Function function = [=](const Tensors& x) {
    return at::scaled_dot_product_attention(x[0], x[1], x[2], {}, dropout, causal);
  };
  return by_autograd("scaled_dot_product_attention", {heads(it.queries), heads(it.keys), heads(it.keys)}, function,
                     pass);
#else
  const double scale = static_cast<double>(it.scale);
  const int64_t queries = it.queries, keys = it.keys;
  const Function function = [=](const Tensors& x) {
    Tensor scores = at::matmul(x[0] * scale, x[1].transpose(-2, -1));
    if (causal) {
      const Tensor future = torch::ones({queries, keys}, torch::kBool).triu(1);
      scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
    }
    return at::matmul(at::dropout(at::softmax(scores, -1), dropout, true), x[2]);
  };
  return by_autograd("matmul softmax matmul", {heads(it.queries), heads(it.keys), heads(it.keys)}, function, pass);
#endif
}

// Rows × channels as an image, channels last, as square as the rows can be: where a side is 1, LibTorch may take the
// layout for another one, in which it is slow.
std::vector<Contender> torch_batch_norm(const OpShape& of, ops::Pass pass) {
  const auto& it = std::get<BatchNormShape>(of);
  auto width = static_cast<int64_t>(std::sqrt(static_cast<double>(it.rows.rows)));
  while (it.rows.rows % width != 0) --width;
  const auto image = [&] { return channels_last(values({1, it.rows.channels, it.rows.rows / width, width})); };
  Tensors leaves{image(), values({it.rows.channels}), values({it.rows.channels})};
  if (it.add) leaves.push_back(image());
  const bool add = it.add, relu = it.relu;
  const Function function = [=](const Tensors& x) {
    Tensor y = at::batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, false);
    if (add) y = y + x[3];
    return relu ? y.relu() : y;
  };
  return by_autograd("batch_norm", std::move(leaves), function, pass);
}

std::vector<Contender> torch_max_pool(const OpShape& of, ops::Pass pass) {
  const auto it = std::get<PoolingShape>(of);
  const Function function = [=](const Tensors& x) {
    return at::max_pool2d(it.relu ? x[0].relu() : x[0], it.kernel, it.stride, it.padding);
  };
  return by_autograd("max_pool2d", {channels_last(values({it.batch, it.channels, it.height, it.width}))}, function,
                     pass);
}

std::vector<Contender> torch_mean_pool(const OpShape& of, ops::Pass pass) {
  const auto it = std::get<PoolingShape>(of);
  const Function function = [=](const Tensors& x) {
    return at::avg_pool2d(x[0], it.kernel, it.stride, it.padding, false, false);
  };
  return by_autograd("avg_pool2d", {channels_last(values({it.batch, it.channels, it.height, it.width}))}, function,
                     pass);
}

Tensors rows_of(const OpShape& of) {
  const auto& it = std::get<ops::RowShape>(of);
  return {values({it.rows, it.channels})};
}

std::vector<Contender> torch_relu(const OpShape& of, ops::Pass pass) {
  return by_autograd(
      "relu", rows_of(of), [](const Tensors& x) { return at::relu(x[0]); }, pass);
}
std::vector<Contender> torch_gelu(const OpShape& of, ops::Pass pass) {
  return by_autograd(
      "gelu", rows_of(of), [](const Tensors& x) { return at::gelu(x[0]); }, pass);
}
std::vector<Contender> torch_dropout(const OpShape& of, ops::Pass pass) {
  return by_autograd(
      "dropout", rows_of(of), [](const Tensors& x) { return at::dropout(x[0], 0.1, true); }, pass);
}
std::vector<Contender> torch_softmax(const OpShape& of, ops::Pass pass) {
  return by_autograd(
      "softmax", rows_of(of), [](const Tensors& x) { return at::softmax(x[0], -1); }, pass);
}
std::vector<Contender> torch_cross_entropy(const OpShape& of, ops::Pass pass) {
  const auto& it = std::get<ops::RowShape>(of);
  const Tensor targets = torch::arange(it.rows).remainder(it.channels);
  return by_autograd(
      "cross_entropy_loss", rows_of(of), [=](const Tensors& x) { return at::cross_entropy_loss(x[0], targets); }, pass);
}
std::vector<Contender> torch_layer_norm(const OpShape& of, ops::Pass pass) {
  const int64_t columns = std::get<ops::RowShape>(of).channels;
  Tensors leaves = rows_of(of);
  leaves.push_back(values({columns}));
  leaves.push_back(values({columns}));
  return by_autograd(
      "layer_norm", std::move(leaves), [=](const Tensors& x) { return at::layer_norm(x[0], {columns}, x[1], x[2]); },
      pass);
}

}  // namespace

OpPeer libtorch_peer() {
  return {.name = "libtorch",
          .what = "LibTorch's operators, as training calls them",
          .require = [] { at::set_num_threads(ops::threads()); },
          .version = [] { return std::string("LibTorch " TORCH_VERSION); },
          .operators = {{"conv", torch_conv},
                        {"matmul", torch_linear},
                        {"lstm", torch_recurrent},
                        {"gru", torch_recurrent},
                        {"attention", torch_attention},
                        {"batch-norm", torch_batch_norm},
                        {"max-pool", torch_max_pool},
                        {"mean-pool", torch_mean_pool},
                        {"relu", torch_relu},
                        {"gelu", torch_gelu},
                        {"dropout", torch_dropout},
                        {"softmax", torch_softmax},
                        {"cross-entropy", torch_cross_entropy},
                        {"layer-norm", torch_layer_norm}}};
}

}  // namespace trireme::bench

#include "trireme/operators/replace.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <ATen/ops/adaptive_avg_pool2d_native.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/conv2d_native.h>
#include <ATen/ops/cross_entropy_loss_native.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/layer_norm_native.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/max_pool2d_native.h>
#include <ATen/ops/softmax_native.h>
#include <torch/library.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR == 1
#include <ATen/ops/_scaled_dot_product_attention_native.h>
#else
#include <ATen/ops/scaled_dot_product_attention_native.h>
#endif

#include <memory>

#include "trireme/operators/attention.h"
#include "trireme/operators/conv.h"
#include "trireme/operators/embedding.h"
#include "trireme/operators/linear.h"
#include "trireme/operators/modules.h"
#include "trireme/operators/norm.h"
#include "trireme/operators/pooling.h"
#include "trireme/operators/recurrent.h"
#include "trireme/operators/registry.h"
#include "trireme/operators/rows.h"

namespace trireme::operators {
namespace {

using torch::Tensor;

std::array<std::int64_t, 2> pair_of(at::IntArrayRef values) { return {values[0], values[values.size() - 1]}; }

// How LibTorch reads one number for both sides; anything else is its own to refuse.
bool is_pair(at::IntArrayRef values) { return values.size() == 1 || values.size() == 2; }

#if TORCH_VERSION_MAJOR >= 2
auto symbols(at::IntArrayRef sizes) { return c10::fromIntArrayRefSlow(sizes); }
#else
auto symbols(at::IntArrayRef sizes) { return c10::fromIntArrayRef(sizes); }
#endif

// None where the layer or the tensors are LibTorch's.
MaybeTensor our_conv2d(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, std::int64_t groups, bool bf16) {
  const auto layer = layer_of(weight);
  if (!layer || !is_pair(stride) || !is_pair(padding) || !is_pair(dilation)) return {};
  const ConvCall call{input,  weight, bias.value_or(Tensor()), pair_of(stride), pair_of(padding), pair_of(dilation),
                      groups, bf16};
  if (!takes(call)) return {};
  return convolution(call, layer, internal::take_epilogue(/*can_add=*/false));
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, at::IntArrayRef stride,
              at::IntArrayRef padding, at::IntArrayRef dilation, std::int64_t groups) {
  if (auto ours = our_conv2d(input, weight, bias, stride, padding, dilation, groups, false)) return *ours;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
  return at::native::conv2d_symint(input, weight, bias, symbols(stride), symbols(padding), symbols(dilation), groups);
#else
  return at::native::conv2d(input, weight, bias, stride, padding, dilation, groups);
#endif
}

using NormResults = std::tuple<Tensor, Tensor, Tensor, Tensor, std::int64_t>;
NormResults batch_norm_impl(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                            const MaybeTensor& running_mean, const MaybeTensor& running_variance, bool training,
                            double momentum, double epsilon, bool cudnn) {
  const auto layer = weight ? layer_of(*weight) : nullptr;
  // Forward and backward, of rows without height and width: fewer cost less than the calls around them.
  constexpr double kOperations = 20;
  const bool few =
      layer && input.dim() == 2 && kOperations * static_cast<double>(input.numel()) < layer->settings().least_flops;
  if (layer && !few) {
    const NormCall call{input,
                        *weight,
                        bias.value_or(Tensor()),
                        running_mean.value_or(Tensor()),
                        running_variance.value_or(Tensor()),
                        training,
                        momentum,
                        epsilon};
    if (takes(call)) {
      const auto none = torch::empty({0});  // what only LibTorch's own gradient would read
      return {batch_norm(call, internal::take_epilogue(/*can_add=*/true)), none, none, none, 0};
    }
  }
  return at::native::_batch_norm_impl_index(input, weight, bias, running_mean, running_variance, training, momentum,
                                            epsilon, cudnn);
}

Tensor max_pool2d(const Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                  at::IntArrayRef dilation, bool ceil_mode) {
  const auto plain = [](at::IntArrayRef values) { return values[0] == 1 && values[values.size() - 1] == 1; };
  if (!ceil_mode && is_pair(kernel) && (stride.empty() || is_pair(stride)) && is_pair(padding) && is_pair(dilation) &&
      plain(dilation)) {
    const PoolCall call{pair_of(kernel), pair_of(stride.empty() ? kernel : stride), pair_of(padding)};
    if (takes(input, call)) return max_pool(input, call, false);
  }
  return at::native::max_pool2d(input, kernel, stride, padding, dilation, ceil_mode);
}

Tensor avg_pool2d(c10::DispatchKeySet keys, const Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride,
                  at::IntArrayRef padding, bool ceil_mode, bool counts_padding, MaybeInteger divisor) {
  if (!ceil_mode && is_pair(kernel) && (stride.empty() || is_pair(stride)) && is_pair(padding) &&
      divisor.value_or(1) > 0) {
    const PoolCall call{pair_of(kernel), pair_of(stride.empty() ? kernel : stride), pair_of(padding)};
    const auto all = call.kernel[0] * call.kernel[1];
    if (takes_mean(input, call)) return mean_pool(input, call, divisor.value_or(counts_padding ? all : 0));
  }
  return as_libtorch<at::_ops::avg_pool2d>(keys, input, kernel, stride, padding, ceil_mode, counts_padding, divisor);
}

Tensor adaptive_avg_pool2d(const Tensor& input, at::IntArrayRef outputs) {
  if (takes_adaptive(input, outputs)) return adaptive_mean_pool(input, outputs);
  return at::native::adaptive_avg_pool2d_symint(input, symbols(outputs));
}

MaybeTensor our_linear(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, bool bf16) {
  const auto layer = layer_of(weight);
  const Tensor addend = bias.value_or(Tensor());
  if (!layer || !takes_linear(input, weight, addend)) return {};
  return linear(input, weight, addend, layer, internal::take_epilogue(/*can_add=*/false), bf16);
}

Tensor linear_layer(const Tensor& input, const Tensor& weight, const MaybeTensor& bias) {
  if (auto ours = our_linear(input, weight, bias, false)) return *ours;
  return at::native::linear(input, weight, bias);
}

at::ScalarType autocast_type() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::get_autocast_dtype(torch::kCPU);
#else
  return at::autocast::get_autocast_cpu_dtype();
#endif
}

// What autocast would cast before LibTorch's operators see it: ours take f32 as it is and give f32, and round factors
// inside where that is faster. For all else, what LibTorch's autocast does, its cache of cast weights included.
Tensor conv2d_under_autocast(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, at::IntArrayRef stride,
                             at::IntArrayRef padding, at::IntArrayRef dilation, std::int64_t groups) {
  const WithoutAutocast without_autocast;
  const auto type = autocast_type();
  if (type == torch::kBFloat16) {
    if (auto ours = our_conv2d(input, weight, bias, stride, padding, dilation, groups, true)) return *ours;
  }
  const auto cast = [type](const auto& x) { return at::autocast::cached_cast(type, x, torch::kCPU); };
  return at::conv2d(cast(input), cast(weight), cast(bias), stride, padding, dilation, groups);
}

Tensor linear_under_autocast(const Tensor& input, const Tensor& weight, const MaybeTensor& bias) {
  const WithoutAutocast without_autocast;
  const auto type = autocast_type();
  if (type == torch::kBFloat16) {
    if (auto ours = our_linear(input, weight, bias, true)) return *ours;
  }
  const auto cast = [type](const auto& x) { return at::autocast::cached_cast(type, x, torch::kCPU); };
  return at::linear(cast(input), cast(weight), cast(bias));
}

// Null where LibTorch computes the call.
std::shared_ptr<Layer> layer_taking(const RecurrentCall& call) {
  const auto layer = call.weights.empty() ? nullptr : layer_of(call.weights[0]);
  return layer && takes(call) ? layer : nullptr;
}

std::tuple<Tensor, Tensor, Tensor> lstm_stack(const Tensor& input, at::TensorList state, at::TensorList weights,
                                              bool biases, std::int64_t layers, double dropout, bool training,
                                              bool bidirectional, bool batch_first) {
  if (state.size() == 2) {
    const RecurrentCall call{
        ops::RecurrentKind::lstm, input,        state[0], state[1], weights.vec(), biases, batch_first, layers,
        training ? dropout : 0,   bidirectional};
    if (const auto layer = layer_taking(call)) return recurrent(call, layer);
  }
  return at::native::lstm(input, state, weights, biases, layers, dropout, training, bidirectional, batch_first);
}

std::tuple<Tensor, Tensor> gru_stack(const Tensor& input, const Tensor& h0, at::TensorList weights, bool biases,
                                     std::int64_t layers, double dropout, bool training, bool bidirectional,
                                     bool batch_first) {
  const RecurrentCall call{ops::RecurrentKind::gru, input,        h0,          Tensor(),
                           weights.vec(),           biases,       batch_first, layers,
                           training ? dropout : 0,  bidirectional};
  if (const auto layer = layer_taking(call)) {
    const auto [output, h, none] = recurrent(call, layer);
    return {output, h};
  }
  return at::native::gru(input, h0, weights, biases, layers, dropout, training, bidirectional, batch_first);
}

Tensor embedding_rows(c10::DispatchKeySet keys, const Tensor& table, const Tensor& indices, std::int64_t padding,
                      bool by_frequency, bool sparse) {
  if (!by_frequency && !sparse && layer_of(table) && takes_embedding(table, indices)) {
    return table_rows(table, indices, padding);
  }
  return as_libtorch<at::_ops::embedding>(keys, table, indices, padding, by_frequency, sparse);
}

Tensor softmax_of(const Tensor& x, std::int64_t dimension, MaybeType type) {
  if (type.value_or(torch::kFloat32) == torch::kFloat32 && takes_softmax(x, dimension)) return row_softmax(x);
  return at::native::softmax(x, dimension, type);
}

Tensor gelu_of(c10::DispatchKeySet keys, const Tensor& x, c10::string_view approximate) {
  const bool by_tanh = approximate == "tanh";
  if ((by_tanh || approximate == "none") && takes_gelu(x)) return fused_gelu(x, by_tanh);
  return as_libtorch<at::_ops::gelu>(keys, x, approximate);
}

// Null where LibTorch computes the call, [batch][heads][length][dim].
Tensor attention_of(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, double dropout,
                    bool causal, double scale) {
  if ((mask && mask->defined()) || q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return {};
  AttentionOptions options{.causal = causal, .scale = scale, .dropout = dropout};
  const Tensor queries = q.transpose(1, 2), keys = k.transpose(1, 2), values = v.transpose(1, 2);
  if (!takes_attention(queries, keys, values, options)) return {};
  if (dropout > 0) options.seed = random_seed();
  return attention(queries, keys, values, options).transpose(1, 2);
}

#if TORCH_VERSION_MAJOR == 1
std::tuple<Tensor, Tensor> dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                 const MaybeTensor& mask, double dropout, bool needs_weights,
                                                 bool causal) {
  if (!needs_weights) {
    const Tensor y = attention_of(q, k, v, mask, dropout, causal, 0);
    if (y.defined()) return {y, Tensor()};
  }
  return at::native::_scaled_dot_product_attention(q, k, v, mask, dropout, needs_weights, causal);
}
#elif TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 5
Tensor dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, double dropout,
                             bool causal, std::optional<double> scale, bool groups) {
  if (!groups && scale.value_or(1) > 0) {
    const Tensor y = attention_of(q, k, v, mask, dropout, causal, scale.value_or(0));
    if (y.defined()) return y;
  }
  return at::native::scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, groups);
}
#endif

Tensor norm_of_layer(const Tensor& input, at::IntArrayRef normalized, const MaybeTensor& weight,
                     const MaybeTensor& bias, double epsilon, bool cudnn) {
  const Tensor factor = weight.value_or(Tensor()), addend = bias.value_or(Tensor());
  if (layer_of(factor) && takes_layer_norm(input, normalized, factor, addend)) {
    return layer_norm(input, factor, addend, epsilon);
  }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
  return at::native::layer_norm_symint(input, symbols(normalized), weight, bias, epsilon, cudnn);
#else
  return at::native::layer_norm(input, normalized, weight, bias, epsilon, cudnn);
#endif
}

Tensor cross_entropy_loss(const Tensor& scores, const Tensor& targets, const MaybeTensor& weight,
                          std::int64_t reduction, std::int64_t ignored, double smoothing) {
  if (!weight && reduction == at::Reduction::Mean && takes_cross_entropy(scores, targets)) {
    return cross_entropy(scores, targets, ignored, smoothing);
  }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
  return at::native::cross_entropy_loss_symint(scores, targets, weight, reduction, ignored, smoothing);
#else
  return at::native::cross_entropy_loss(scores, targets, weight, reduction, ignored, smoothing);
#endif
}

#if TORCH_VERSION_MAJOR >= 2
using c10::WarningUtils::WarningHandlerGuard;
struct Silent : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};
#else
using c10::Warning::WarningHandlerGuard;
struct Silent : c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, bool) override {}
};
#endif

}  // namespace

void replace_operators() {
  take_modules();
  static const auto autocast = [] {
    Silent silent;  // LibTorch warns of operators that had one for autocast
    const WarningHandlerGuard guard(&silent);
    auto made = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastCPU, __FILE__,
                                                 __LINE__);
    made->impl("conv2d", conv2d_under_autocast);
    made->impl("linear", linear_under_autocast);
    return made;
  }();
  (void)autocast;
  static const auto library = [] {
    auto made = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__,
                                                 __LINE__);
    made->impl("conv2d", conv2d);
    made->impl("_batch_norm_impl_index", batch_norm_impl);
    made->impl("max_pool2d", max_pool2d);
    made->impl("avg_pool2d", avg_pool2d);
    made->impl("adaptive_avg_pool2d", adaptive_avg_pool2d);
    made->impl("linear", linear_layer);
    made->impl("lstm.input", lstm_stack);
    made->impl("gru.input", gru_stack);
    made->impl("embedding", embedding_rows);
    made->impl("softmax.int", softmax_of);
    made->impl("gelu", gelu_of);
#if TORCH_VERSION_MAJOR == 1
    made->impl("_scaled_dot_product_attention", dot_product_attention);
#elif TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 5
    made->impl("scaled_dot_product_attention", dot_product_attention);
#endif
    made->impl("layer_norm", norm_of_layer);
    made->impl("cross_entropy_loss", cross_entropy_loss);
    return made;
  }();
  (void)library;
}

}  // namespace trireme::operators

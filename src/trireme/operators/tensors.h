// What the bindings share: which tensors are ours to compute, their layout, and gradients of gradients.
#pragma once
#include <torch/torch.h>
#include <torch/version.h>

#include <functional>

#include "trireme/ops/passes/batch_norm.h"

namespace trireme::operators {

// What operators take: LibTorch's own until it became the standard's.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
using MaybeTensor = std::optional<torch::Tensor>;
using MaybeInteger = std::optional<std::int64_t>;
using MaybeType = std::optional<torch::ScalarType>;
#else
using MaybeTensor = c10::optional<torch::Tensor>;
using MaybeInteger = c10::optional<std::int64_t>;
using MaybeType = c10::optional<torch::ScalarType>;
#endif

// An undefined tensor as none: autograd's functions take no other.
inline MaybeTensor maybe(const torch::Tensor& x) { return x.defined() ? MaybeTensor(x) : MaybeTensor(); }

// Plain numbers in the host's memory, f32, not traced: anything else is LibTorch's to compute.
bool plain_f32(const torch::Tensor& x);
inline bool absent_or_plain_f32(const torch::Tensor& x) { return !x.defined() || plain_f32(x); }

// Four dimensions whose channels lie together, as all passes on images want it.
bool is_channels_last(const torch::Tensor& x);
inline torch::Tensor channels_last(const torch::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }
torch::Tensor empty_channels_last(at::IntArrayRef sizes);
// A pixel is a row.
ops::RowShape rows_of(const torch::Tensor& x);

// Autocast does not reach what is called while this lives.
struct WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKey::AutocastCPU};
};

inline const float* data(const torch::Tensor& x) { return x.defined() ? x.data_ptr<float>() : nullptr; }
inline float* data(torch::Tensor& x) { return x.defined() ? x.data_ptr<float>() : nullptr; }

// The operator as LibTorch computes and differentiates it, where ours stands in its place for CPU tensors with
// autograd: its own is still there for tensors of other kinds. `keys` are those of the arguments.
template <class Operator, class... Arguments>
auto as_libtorch(c10::DispatchKeySet keys, const Arguments&... arguments) {
  const auto below = keys & c10::after_ADInplaceOrView_keyset;
  return Operator::redispatch(below.add(c10::DispatchKey::AutogradOther), arguments...);
}

// Gradients that can be differentiated again, when autograd asks for such (create_graph): those of LibTorch's `forward`
// of the same inputs. Undefined where an input is, or needs none.
using Forward = std::function<torch::Tensor(const torch::autograd::variable_list& inputs)>;
torch::autograd::variable_list differentiable_gradients(const torch::autograd::variable_list& inputs,
                                                        const torch::Tensor& gradient, const Forward& forward);

}  // namespace trireme::operators

// Pooling as operators of autograd.
#pragma once
#include "trireme/operators/tensors.h"
#include "trireme/ops/passes/pool.h"

namespace trireme::operators {

struct PoolCall {
  std::array<std::int64_t, 2> kernel, stride, padding;
};

// Whether ours can do this one: f32, channels last, windows that fit.
bool takes(const torch::Tensor& x, const PoolCall& call);
torch::Tensor max_pool(const torch::Tensor& x, const PoolCall& call, bool relu);

// relu(max_pool2d(x)), which is max_pool2d(relu(x)): by LibTorch's operators where ours are not wanted. May change x.
torch::Tensor relu_max_pool(torch::Tensor x, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);

// The sum of each window over `divisor`, or over the number of its pixels inside the image where that is 0.
bool takes_mean(const torch::Tensor& x, const PoolCall& call);
torch::Tensor mean_pool(const torch::Tensor& x, const PoolCall& call, std::int64_t divisor);

bool takes_adaptive(const torch::Tensor& x, at::IntArrayRef outputs);
torch::Tensor adaptive_mean_pool(const torch::Tensor& x, at::IntArrayRef outputs);

}  // namespace trireme::operators

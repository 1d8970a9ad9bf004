#include "trireme/train/optimizers/by_operations.h"

#include <cmath>

#include "trireme/optim/kinds.h"
#include "trireme/optim/norms.h"

namespace trireme::train {
namespace {

torch::Tensor decayed(const TensorStep& x) {
  return x.options.weight_decay == 0 ? x.g : x.g.add(x.w, x.options.weight_decay);
}

void sgd(const TensorStep& x) {
  const auto& o = x.options;
  auto d = decayed(x);
  if (o.momentum > 0) {
    x.kept[0].mul_(o.momentum).add_(d, x.step > 1 ? 1 - o.dampening : 1);
    d = o.nesterov ? d.add(x.kept[0], o.momentum) : x.kept[0];
  }
  x.w.add_(d, -x.lr);
}

void adam_by(const TensorStep& x, const torch::Tensor& d) {
  const auto& o = x.options;
  const auto t = static_cast<double>(x.step);
  torch::Tensor &mean = x.kept[0], &square = x.kept[1];
  mean.mul_(o.beta1).add_(d, 1 - o.beta1);
  square.mul_(o.beta2).addcmul_(d, d, 1 - o.beta2);
  if (o.amsgrad) x.kept[2].copy_(torch::maximum(x.kept[2], square));
  auto root = (o.amsgrad ? x.kept[2] : square).sqrt().div_(std::sqrt(1 - std::pow(o.beta2, t))).add_(o.epsilon);
  x.w.addcdiv_(mean, root, -x.lr / (1 - std::pow(o.beta1, t)));
}

void adam(const TensorStep& x) { adam_by(x, decayed(x)); }

void adamw(const TensorStep& x) {
  if (x.options.weight_decay != 0) x.w.mul_(1 - x.lr * x.options.weight_decay);
  adam_by(x, x.g);
}

void rmsprop(const TensorStep& x) {
  const auto& o = x.options;
  const auto d = decayed(x);
  torch::Tensor& square = x.kept[0];
  square.mul_(o.alpha).addcmul_(d, d, 1 - o.alpha);
  auto root = square;
  if (o.centered) {
    x.kept[1].mul_(o.alpha).add_(d, 1 - o.alpha);
    root = square.addcmul(x.kept[1], x.kept[1], -1).clamp_min_(0);
  }
  root = root.sqrt().add_(o.epsilon);
  if (o.momentum == 0) {
    x.w.addcdiv_(d, root, -x.lr);
    return;
  }
  auto& momentum = x.kept.back();
  x.w.add_(momentum.mul_(o.momentum).addcdiv_(d, root), -x.lr);
}

void adagrad(const TensorStep& x) {
  const auto d = decayed(x);
  x.kept[0].addcmul_(d, d);
  const double lr = x.lr / (1 + static_cast<double>(x.step - 1) * x.options.lr_decay);
  x.w.addcdiv_(d, x.kept[0].sqrt().add_(x.options.epsilon), -lr);
}

// One f64 on the tensor's device; independent of threads on the CPU.
torch::Tensor square_of(const torch::Tensor& tensor) {
  const auto wide = tensor.to(torch::kDouble).contiguous();
  if (!wide.device().is_cpu()) return wide.square().sum();
  const auto n = static_cast<std::size_t>(wide.numel());
  std::vector<double> sums;
  for (std::size_t at = 0; at < n; at += optim::kBlock) {
    sums.push_back(optim::block_square(wide.data_ptr<double>() + at, std::min(optim::kBlock, n - at)));
  }
  return torch::scalar_tensor(optim::tree_sum(sums), torch::kDouble);
}

// The norms of two tensors of one parameter: of all its parts, where it is cut.
struct NormTensors {
  torch::Tensor first, second;
};
NormTensors norms_of(const TensorStep& x, const torch::Tensor& first, const torch::Tensor& second) {
  auto squares = torch::stack({square_of(first), square_of(second)});
  if (x.over_parts) {
    auto here = squares.to(torch::kCPU);
    x.over_parts(x.name, {here.data_ptr<double>(), 2});
    squares.copy_(here);
  }
  squares.sqrt_();
  return {squares[0], squares[1]};
}

void lars(const TensorStep& x) {
  const auto& o = x.options;
  auto d = x.g.add(x.w, o.weight_decay);
  if (x.w.dim() > 1) {
    const auto [w, g] = norms_of(x, x.w, x.g);
    auto rate = o.trust * w / (g + o.weight_decay * w);
    d = d.mul_(torch::where((w > 0).logical_and(g > 0), rate, torch::ones_like(rate)).to(d.scalar_type()));
  }
  x.kept[0].mul_(o.momentum).add_(d, x.lr);
  x.w.sub_(x.kept[0]);
}

void lamb(const TensorStep& x) {
  const auto& o = x.options;
  const auto t = static_cast<double>(x.step);
  torch::Tensor &mean = x.kept[0], &square = x.kept[1];
  mean.mul_(o.beta1).add_(x.g, 1 - o.beta1);
  square.mul_(o.beta2).addcmul_(x.g, x.g, 1 - o.beta2);
  auto update = mean * (1 / (1 - std::pow(o.beta1, t)));
  update.div_(square.sqrt().mul_(1 / std::sqrt(1 - std::pow(o.beta2, t))).add_(o.epsilon));
  update.add_(x.w, o.weight_decay);
  if (x.w.dim() > 1) {
    const auto [w, u] = norms_of(x, x.w, update);
    auto ratio = torch::where((w > 0).logical_and(u > 0), w / u, torch::ones_like(w));
    update.mul_(ratio.to(update.scalar_type()));
  }
  x.w.sub_(update, x.lr);
}

struct Row {
  const optim::OptimizerKind& kind;
  Operations operations;
};
const Row kRows[] = {{optim::kSgd, sgd},         {optim::kAdam, adam},       {optim::kAdamW, adamw},
                     {optim::kRmsProp, rmsprop}, {optim::kAdagrad, adagrad}, {optim::kLars, lars},
                     {optim::kLamb, lamb}};

}  // namespace

Operations operations_of(const optim::OptimizerKind& kind) {
  for (const auto& row : kRows) {
    if (row.kind.name == kind.name) return row.operations;
  }
  return nullptr;
}

}  // namespace trireme::train

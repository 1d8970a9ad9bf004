// Adam (Kingma & Ba, 2014) and AdamW (Loshchilov & Hutter, 2017), as LibTorch's: m and v are running means of g and g²,
// w -= lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + ε). Adam adds decay·w to g; AdamW shrinks w by 1 - lr·decay instead.
#include <cmath>

#include "trireme/train/optimizers/kernels.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

class Adam : public PerParameter {
 public:
  Adam(const NamedTensors& parameters, const OptimizerOptions& options, bool decoupled)
      : PerParameter(parameters, {"mean", "square"}, true), options_(options), decoupled_(decoupled) {}

 private:
  double step_size(std::int64_t steps, double lr) const {
    return lr / (1 - std::pow(options_.beta1, static_cast<double>(steps)));
  }
  double root_correction(std::int64_t steps) const {
    return std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(steps)));
  }

  void fused(const Slot&, const Memory& x, std::int64_t steps, double lr) override {
    kernels::Adam constants{
        .beta1 = static_cast<float>(options_.beta1),
        .beta2 = static_cast<float>(options_.beta2),
        .epsilon = static_cast<float>(options_.epsilon),
        .rest1 = static_cast<float>(1 - options_.beta1),
        .rest2 = static_cast<float>(1 - options_.beta2),
        .step = static_cast<float>(step_size(steps, lr)),
        .root_correction = static_cast<float>(root_correction(steps)),
        .weight_decay = decoupled_ ? 0.0f : static_cast<float>(options_.weight_decay),
        .keep = decoupled_ ? static_cast<float>(1 - lr * options_.weight_decay) : 1.0f,
    };
    in_parallel(x.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::adam(x.p + begin, x.g + begin, x.first + begin, x.second + begin, static_cast<std::size_t>(end - begin),
                    constants);
    });
  }

  void plain(Slot& slot, const torch::Tensor& gradient, std::int64_t steps, double lr) override {
    torch::Tensor d = gradient;
    if (options_.weight_decay != 0) {
      if (decoupled_) {
        slot.parameter.mul_(1 - lr * options_.weight_decay);
      } else {
        d = d.add(slot.parameter, options_.weight_decay);
      }
    }
    torch::Tensor &mean = slot.quantities[0], &square = slot.quantities[1];
    mean.mul_(options_.beta1).add_(d, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(d, d, 1 - options_.beta2);
    torch::Tensor root = square.sqrt().div_(root_correction(steps)).add_(options_.epsilon);
    slot.parameter.addcdiv_(mean, root, -step_size(steps, lr));
  }

  OptimizerOptions options_;
  bool decoupled_;
};

}  // namespace

MadeOptimizer make_adam(const NamedTensors& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adam>(parameters, options, false);
}

MadeOptimizer make_adamw(const NamedTensors& parameters, const OptimizerOptions& options) {
  return std::make_unique<Adam>(parameters, options, true);
}

}  // namespace trireme::train

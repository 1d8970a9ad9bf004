// LARS (You, Gitman & Ginsburg, "Large batch training of convolutional networks", 2017): each layer has a rate of its
// own, λ = trust·|w| / (|g| + decay·|w|); m = momentum·m + lr·λ·(g + decay·w); w -= m. λ is 1 for parameters of one
// dimension (biases, normalization) and where a norm is zero.
#include "trireme/train/optimizers/kernels.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

class Lars : public PerParameter {
 public:
  Lars(const NamedTensors& parameters, const OptimizerOptions& options)
      : PerParameter(parameters, {"momentum"}, false), options_(options) {}

 private:
  void fused(const Slot& slot, const Memory& x, std::int64_t, double lr) override {
    double rate = 1;
    if (slot.parameter.dim() > 1) {
      const auto [w, g] = norms_of(options_, slot.name, square_of(x.p, x.n), square_of(x.g, x.n));
      if (w > 0 && g > 0) rate = options_.trust * w / (g + options_.weight_decay * w);
    }
    kernels::Lars constants{static_cast<float>(lr * rate), static_cast<float>(options_.momentum),
                            static_cast<float>(options_.weight_decay)};
    in_parallel(x.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::lars(x.p + begin, x.g + begin, x.first + begin, static_cast<std::size_t>(end - begin), constants);
    });
  }

  void plain(Slot& slot, const torch::Tensor& gradient, std::int64_t, double lr) override {
    torch::Tensor d = gradient.add(slot.parameter, options_.weight_decay);
    if (slot.parameter.dim() > 1) {
      const auto [w, g] = norms_of(options_, slot.name, slot.parameter, gradient);
      auto rate = options_.trust * w / (g + options_.weight_decay * w);
      d = d.mul_(torch::where((w > 0).logical_and(g > 0), rate, torch::ones_like(rate)).to(d.scalar_type()));
    }
    slot.quantities[0].mul_(options_.momentum).add_(d, lr);
    slot.parameter.sub_(slot.quantities[0]);
  }

  OptimizerOptions options_;
};

}  // namespace

MadeOptimizer make_lars(const NamedTensors& parameters, const OptimizerOptions& options) {
  return std::make_unique<Lars>(parameters, options);
}

}  // namespace trireme::train

// Stochastic gradient descent with momentum, as LibTorch's: d = g + decay·w; m = momentum·m + d;
// w -= lr·m, or lr·(d + momentum·m) with Nesterov's.
#include "trireme/base/error.h"
#include "trireme/train/optimizers/kernels.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

std::initializer_list<std::string> quantities(const OptimizerOptions& options) {
  static const std::initializer_list<std::string> kMomentum = {"momentum"}, kNone = {};
  return options.momentum > 0 ? kMomentum : kNone;
}

class Sgd : public PerParameter {
 public:
  Sgd(const NamedTensors& parameters, const OptimizerOptions& options)
      : PerParameter(parameters, quantities(options), false), options_(options) {
    if (options.nesterov && options.momentum == 0)
      throw ConfigError("optimizer sgd: nesterov needs a momentum above 0");
  }

 private:
  void fused(const Slot&, const Memory& x, std::int64_t, double lr) override {
    kernels::Sgd constants{static_cast<float>(lr), static_cast<float>(options_.momentum),
                           static_cast<float>(options_.weight_decay), options_.nesterov};
    in_parallel(x.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::sgd(x.p + begin, x.g + begin, x.first ? x.first + begin : nullptr, static_cast<std::size_t>(end - begin),
                   constants);
    });
  }

  void plain(Slot& slot, const torch::Tensor& gradient, std::int64_t, double lr) override {
    torch::Tensor d = gradient;
    if (options_.weight_decay != 0) d = d.add(slot.parameter, options_.weight_decay);
    if (!slot.quantities.empty()) {
      torch::Tensor& momentum = slot.quantities[0];
      momentum.mul_(options_.momentum).add_(d);
      d = options_.nesterov ? d.add(momentum, options_.momentum) : momentum;
    }
    slot.parameter.add_(d, -lr);
  }

  OptimizerOptions options_;
};

}  // namespace

MadeOptimizer make_sgd(const NamedTensors& parameters, const OptimizerOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace trireme::train

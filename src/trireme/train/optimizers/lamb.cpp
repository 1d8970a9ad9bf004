// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2019): Adam's direction
// with decay, u = m̂ / (sqrt(v̂) + ε) + decay·w, as long as the layer's weights: w -= lr·(|w|/|u|)·u. The ratio is 1 for
// parameters of one dimension (biases, normalization) and where a norm is zero.
#include <cmath>

#include "trireme/train/optimizers/kernels.h"
#include "trireme/train/optimizers/per_parameter.h"

namespace trireme::train {
namespace {

class Lamb : public PerParameter {
 public:
  Lamb(const NamedTensors& parameters, const OptimizerOptions& options)
      : PerParameter(parameters, {"mean", "square"}, true), options_(options) {}

 private:
  double mean_correction(std::int64_t steps) const {
    return 1 / (1 - std::pow(options_.beta1, static_cast<double>(steps)));
  }
  double root_correction(std::int64_t steps) const {
    return 1 / std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(steps)));
  }

  void fused(const Slot& slot, const Memory& x, std::int64_t steps, double lr) override {
    kernels::Lamb constants{
        .beta1 = static_cast<float>(options_.beta1),
        .beta2 = static_cast<float>(options_.beta2),
        .epsilon = static_cast<float>(options_.epsilon),
        .rest1 = static_cast<float>(1 - options_.beta1),
        .rest2 = static_cast<float>(1 - options_.beta2),
        .mean_correction = static_cast<float>(mean_correction(steps)),
        .root_correction = static_cast<float>(root_correction(steps)),
        .weight_decay = static_cast<float>(options_.weight_decay),
    };
    constexpr auto kBlock = static_cast<std::int64_t>(kernels::kBlock);
    std::int64_t blocks = (x.n + kBlock - 1) / kBlock;
    std::vector<double> weights(static_cast<std::size_t>(blocks)), updates(weights.size());
    in_parallel(blocks, kGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        std::int64_t at = block * kBlock;
        auto squares = kernels::lamb_moments(x.p + at, x.g + at, x.first + at, x.second + at,
                                             static_cast<std::size_t>(std::min(kBlock, x.n - at)), constants);
        weights[static_cast<std::size_t>(block)] = squares.weight;
        updates[static_cast<std::size_t>(block)] = squares.update;
      }
    });
    double ratio = 1;
    if (slot.parameter.dim() > 1) {
      const auto [w, u] = norms_of(options_, slot.name, kernels::tree_sum(weights), kernels::tree_sum(updates));
      if (w > 0 && u > 0) ratio = w / u;
    }
    in_parallel(x.n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::lamb_apply(x.p + begin, x.first + begin, x.second + begin, static_cast<std::size_t>(end - begin),
                          constants, static_cast<float>(lr * ratio));
    });
  }

  void plain(Slot& slot, const torch::Tensor& gradient, std::int64_t steps, double lr) override {
    torch::Tensor &mean = slot.quantities[0], &square = slot.quantities[1];
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    auto update = mean * mean_correction(steps);
    update.div_(square.sqrt().mul_(root_correction(steps)).add_(options_.epsilon));
    update.add_(slot.parameter, options_.weight_decay);
    if (slot.parameter.dim() > 1) {
      const auto [w, u] = norms_of(options_, slot.name, slot.parameter, update);
      auto ratio = torch::where((w > 0).logical_and(u > 0), w / u, torch::ones_like(w));
      update.mul_(ratio.to(update.scalar_type()));
    }
    slot.parameter.sub_(update, lr);
  }

  OptimizerOptions options_;
};

}  // namespace

MadeOptimizer make_lamb(const NamedTensors& parameters, const OptimizerOptions& options) {
  return std::make_unique<Lamb>(parameters, options);
}

}  // namespace trireme::train

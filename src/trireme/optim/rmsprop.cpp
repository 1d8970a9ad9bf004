// RMSprop (Tieleman & Hinton, lecture 6.5 of "Neural networks for machine learning", 2012), as LibTorch's: d = g +
// decay·w; s is a running mean of d², u = d / (sqrt(s) + ε); w -= lr·u. Centered (Graves, "Generating sequences with
// recurrent neural networks", 2013): s less the square of a running mean of d. With momentum m = momentum·m + u; w -=
// lr·m.
#include <algorithm>
#include <cmath>

#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float lr, alpha;
  float rest;  // 1 - alpha, exact
  float epsilon, momentum, weight_decay;
};

// `mean` where it is centered, `m` where there is momentum; else null. The tests stand outside of loops.
TRIREME_CLONES
void step(float* __restrict w, const float* __restrict g, float* __restrict s, float* __restrict mean,
          float* __restrict m, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  const auto move = [&](std::size_t i, float spread, float d) __attribute__((always_inline)) {
    w[i] -= c.lr * (d / (std::sqrt(spread) + c.epsilon));
  };
  const auto roll = [&](std::size_t i, float spread, float d) __attribute__((always_inline)) {
    m[i] = c.momentum * m[i] + d / (std::sqrt(spread) + c.epsilon);
    w[i] -= c.lr * m[i];
  };
  const auto all = [&](const auto& use) __attribute__((always_inline)) {
    if (!mean) {
      for (std::size_t i = 0; i < n; ++i) {
        const float d = g[i] + c.weight_decay * w[i];
        s[i] = s[i] * c.alpha + d * d * c.rest;
        use(i, s[i], d);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        const float d = g[i] + c.weight_decay * w[i];
        s[i] = s[i] * c.alpha + d * d * c.rest;
        mean[i] = mean[i] * c.alpha + d * c.rest;
        // Of equal gradients it is zero, but for rounding.
        const float spread = s[i] - mean[i] * mean[i];
        use(i, spread < 0 ? 0 : spread, d);
      }
    }
  };
  m ? all(roll) : all(move);
}

std::vector<Quantity> quantities_of(const Options& options) {
  std::vector<Quantity> all{{"square"}};
  if (options.centered) all.push_back({"mean"});
  if (options.momentum > 0) all.push_back({"momentum"});
  return all;
}

class RmsProp : public Rule {
 public:
  explicit RmsProp(const Options& options) : Rule({quantities_of(options)}), options_(options) {}

  void apply(const Piece& x, double) const override {
    float* const mean = options_.centered ? x.kept[1] : nullptr;
    float* const m = options_.momentum > 0 ? x.kept[options_.centered ? 2 : 1] : nullptr;
    step(x.w, x.g, x.kept[0], mean, m, x.n, numbers_);
  }

 private:
  void set_step(double lr, std::uint64_t) override {
    const auto& o = options_;
    numbers_ = {static_cast<float>(lr),        static_cast<float>(o.alpha),    static_cast<float>(1 - o.alpha),
                static_cast<float>(o.epsilon), static_cast<float>(o.momentum), static_cast<float>(o.weight_decay)};
  }

  const Options options_;
  Numbers numbers_{};
};

}  // namespace

constinit const OptimizerKind kRmsProp{.name = "rmsprop",
                                       .summary = "steps scaled by a running mean of the gradient's square",
                                       .momentum = true,
                                       .epsilon = true,
                                       .mean_square = true,
                                       .by_element = true,
                                       .lr = 1e-3,
                                       .own_momentum = 0,
                                       .make = make_rule<RmsProp>};

}  // namespace trireme::optim

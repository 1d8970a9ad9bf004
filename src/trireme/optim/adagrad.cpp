// Adagrad (Duchi, Hazan & Singer, 2011), as LibTorch's: d = g + decay·w; s += d²; w -= lr/(1 + (t-1)·lr_decay) · d /
// (sqrt(s) + ε). Weights that are seldom touched keep large steps; without decay, an element whose gradient is zero
// stays as it is.
#include <cmath>

#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float lr;  // of this step
  float epsilon, weight_decay;
};

TRIREME_CLONES
void step(float* __restrict w, const float* __restrict g, float* __restrict s, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] + c.weight_decay * w[i];
    s[i] += d * d;
    w[i] -= c.lr * (d / (std::sqrt(s[i]) + c.epsilon));
  }
}

class Adagrad : public Rule {
 public:
  explicit Adagrad(const Options& options)
      : Rule({{{"sum", static_cast<float>(options.initial_accumulator)}}, true}), options_(options) {}

  void apply(const Piece& x, double) const override { step(x.w, x.g, x.kept[0], x.n, numbers_); }

 private:
  void set_step(double lr, std::uint64_t step) override {
    const double decay = 1 + static_cast<double>(step - 1) * options_.lr_decay;
    numbers_ = {static_cast<float>(lr / decay), static_cast<float>(options_.epsilon),
                static_cast<float>(options_.weight_decay)};
  }

  const Options options_;
  Numbers numbers_{};
};

}  // namespace

constinit const OptimizerKind kAdagrad{.name = "adagrad",
                                       .summary = "steps scaled by the sum of the gradient's squares so far",
                                       .epsilon = true,
                                       .accumulates = true,
                                       .by_element = true,
                                       .lr = 1e-2,
                                       .make = make_rule<Adagrad>};

}  // namespace trireme::optim

// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2019): Adam's direction
// with decay, u = m̂ / (sqrt(v̂) + ε) + decay·w, as long as the layer's weights: w -= lr·(|w|/|u|)·u. The ratio is 1 for
// parameters of one dimension (biases, normalization) and where a norm is zero.
#include <cmath>

#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"
#include "trireme/optim/lanes.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta
  float mean_correction;  // 1 / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
  float weight_decay;
};

__attribute__((always_inline)) inline float update_of(float w, float m, float v, const Numbers& c) {
  return m * c.mean_correction / (std::sqrt(v) * c.root_correction + c.epsilon) + c.weight_decay * w;
}

// The moments move; the sums of squares of weights and updates are of this one block.
TRIREME_CLONES
Squares moments(const float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
                std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = m[i] * c.beta1 + g[i] * c.rest1;
    v[i] = v[i] * c.beta2 + g[i] * g[i] * c.rest2;
  }
  const double updates = sum_of_squares(
      n, [&](std::size_t i)
             __attribute__((always_inline)) { return static_cast<double>(update_of(w[i], m[i], v[i], c)); });
  return {block_square(w, n), updates};
}

TRIREME_CLONES
void step(float* __restrict w, const float* __restrict m, const float* __restrict v, std::size_t n,
          const Numbers& numbers, float rate) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) w[i] -= rate * update_of(w[i], m[i], v[i], c);
}

class Lamb : public Rule {
 public:
  explicit Lamb(const Options& options)
      : Rule({.quantities = {{"mean"}, {"square"}}, .counted = true, .measures = true}), options_(options) {}

  Squares measure(const Piece& x) const override { return moments(x.w, x.g, x.kept[0], x.kept[1], x.n, numbers_); }
  double ratio(double w, double u) const override { return w > 0 && u > 0 ? w / u : 1; }
  void apply(const Piece& x, double ratio) const override {
    step(x.w, x.kept[0], x.kept[1], x.n, numbers_, static_cast<float>(lr() * ratio));
  }

 private:
  void set_step(double, std::uint64_t step) override {
    const auto t = static_cast<double>(step);
    const auto& o = options_;
    numbers_ = {.beta1 = static_cast<float>(o.beta1),
                .beta2 = static_cast<float>(o.beta2),
                .epsilon = static_cast<float>(o.epsilon),
                .rest1 = static_cast<float>(1 - o.beta1),
                .rest2 = static_cast<float>(1 - o.beta2),
                .mean_correction = static_cast<float>(1 / (1 - std::pow(o.beta1, t))),
                .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, t))),
                .weight_decay = static_cast<float>(o.weight_decay)};
  }

  const Options options_;
  Numbers numbers_{};
};

}  // namespace

constinit const OptimizerKind kLamb{.name = "lamb",
                                    .summary = "Adam with a rate per layer, for transformers in large batches",
                                    .moments = true,
                                    .epsilon = true,
                                    .lr = 1e-2,
                                    .make = make_rule<Lamb>};

}  // namespace trireme::optim

// Adam (Kingma & Ba, 2014) and AdamW (Loshchilov & Hutter, 2017), as LibTorch's: m and v are running means of g and g²,
// w -= lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + ε). Adam adds decay·w to g; AdamW shrinks w by 1 - lr·decay instead.
// With amsgrad (Reddi et al., 2018) the most that v was stands in its place.
#include <algorithm>
#include <cmath>

#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta, exact: in f32 the difference would lose digits
  float step;             // lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float weight_decay;     // added to the gradient
  float keep;             // AdamW: what decay leaves of a weight, 1 without
};

TRIREME_CLONES
void plain(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n,
           const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] + c.weight_decay * w[i];
    m[i] = m[i] * c.beta1 + d * c.rest1;
    v[i] = v[i] * c.beta2 + d * d * c.rest2;
    w[i] = w[i] * c.keep - c.step * m[i] / (std::sqrt(v[i]) / c.root_correction + c.epsilon);
  }
}

TRIREME_CLONES
void by_the_most(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
                 float* __restrict most, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] + c.weight_decay * w[i];
    m[i] = m[i] * c.beta1 + d * c.rest1;
    v[i] = v[i] * c.beta2 + d * d * c.rest2;
    most[i] = most[i] < v[i] ? v[i] : most[i];
    w[i] = w[i] * c.keep - c.step * m[i] / (std::sqrt(most[i]) / c.root_correction + c.epsilon);
  }
}

template <bool decoupled>
class Adam : public Rule {
 public:
  explicit Adam(const Options& options)
      : Rule({options.amsgrad ? std::vector<Quantity>{{"mean"}, {"square"}, {"most"}}
                              : std::vector<Quantity>{{"mean"}, {"square"}},
              true}),
        options_(options) {}

  void apply(const Piece& x, double) const override {
    if (options_.amsgrad) return by_the_most(x.w, x.g, x.kept[0], x.kept[1], x.kept[2], x.n, numbers_);
    plain(x.w, x.g, x.kept[0], x.kept[1], x.n, numbers_);
  }

 private:
  void set_step(double lr, std::uint64_t step) override {
    const auto t = static_cast<double>(step);
    const auto& o = options_;
    numbers_ = {.beta1 = static_cast<float>(o.beta1),
                .beta2 = static_cast<float>(o.beta2),
                .epsilon = static_cast<float>(o.epsilon),
                .rest1 = static_cast<float>(1 - o.beta1),
                .rest2 = static_cast<float>(1 - o.beta2),
                .step = static_cast<float>(lr / (1 - std::pow(o.beta1, t))),
                .root_correction = static_cast<float>(std::sqrt(1 - std::pow(o.beta2, t))),
                .weight_decay = decoupled ? 0.0f : static_cast<float>(o.weight_decay),
                .keep = decoupled ? static_cast<float>(1 - lr * o.weight_decay) : 1.0f};
  }

  const Options options_;
  Numbers numbers_{};
};

}  // namespace

constinit const OptimizerKind kAdam{.name = "adam",
                                    .summary = "steps scaled by running means of the gradient and its square",
                                    .moments = true,
                                    .epsilon = true,
                                    .by_element = true,
                                    .lr = 1e-3,
                                    .make = make_rule<Adam<false>>};
constinit const OptimizerKind kAdamW{.name = "adamw",
                                     .summary = "Adam with weight decay apart from the gradient",
                                     .moments = true,
                                     .epsilon = true,
                                     .by_element = true,
                                     .lr = 1e-3,
                                     .make = make_rule<Adam<true>>};

}  // namespace trireme::optim

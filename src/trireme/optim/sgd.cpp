// Stochastic gradient descent with momentum, as LibTorch's: d = g + decay·w; m = momentum·m + (1-dampening)·d, at first
// d; w -= lr·m, or lr·(d + momentum·m) with Nesterov's.
#include "trireme/base/error.h"
#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float lr, momentum, weight_decay;
  float taken;  // of d by the momentum
};

TRIREME_CLONES
void plain(float* __restrict w, const float* __restrict g, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) w[i] -= c.lr * (g[i] + c.weight_decay * w[i]);
}

TRIREME_CLONES
void with_momentum(float* __restrict w, const float* __restrict g, float* __restrict m, std::size_t n,
                   const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = c.momentum * m[i] + (g[i] + c.weight_decay * w[i]);
    w[i] -= c.lr * m[i];
  }
}

TRIREME_CLONES
void ahead(float* __restrict w, const float* __restrict g, float* __restrict m, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] + c.weight_decay * w[i];
    m[i] = c.momentum * m[i] + d;
    w[i] -= c.lr * (d + c.momentum * m[i]);
  }
}

TRIREME_CLONES
void dampened(float* __restrict w, const float* __restrict g, float* __restrict m, std::size_t n,
              const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = c.momentum * m[i] + c.taken * (g[i] + c.weight_decay * w[i]);
    w[i] -= c.lr * m[i];
  }
}

class Sgd : public Rule {
 public:
  explicit Sgd(const Options& options)
      : Rule({options.momentum > 0 ? std::vector<Quantity>{{"momentum"}} : std::vector<Quantity>{},
              options.momentum > 0 && options.dampening != 0}),
        options_(options) {
    if (options.nesterov && options.momentum == 0)
      throw ConfigError("optimizer sgd: nesterov needs a momentum above 0");
    if (options.nesterov && options.dampening != 0) throw ConfigError("optimizer sgd: nesterov goes without dampening");
  }

  void apply(const Piece& x, double) const override {
    if (options_.momentum == 0) return plain(x.w, x.g, x.n, numbers_);
    if (options_.nesterov) return ahead(x.w, x.g, x.kept[0], x.n, numbers_);
    if (options_.dampening != 0) return dampened(x.w, x.g, x.kept[0], x.n, numbers_);
    with_momentum(x.w, x.g, x.kept[0], x.n, numbers_);
  }

 private:
  void set_step(double lr, std::uint64_t step) override {
    numbers_ = {static_cast<float>(lr), static_cast<float>(options_.momentum),
                static_cast<float>(options_.weight_decay),
                step > 1 ? static_cast<float>(1 - options_.dampening) : 1.0f};
  }

  const Options options_;
  Numbers numbers_{};
};

}  // namespace

constinit const OptimizerKind kSgd{.name = "sgd",
                                   .summary = "gradient descent with momentum or Nesterov's momentum",
                                   .momentum = true,
                                   .linear = true,
                                   .by_element = true,
                                   .make = make_rule<Sgd>};

}  // namespace trireme::optim

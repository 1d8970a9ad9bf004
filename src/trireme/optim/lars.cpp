// LARS (You, Gitman & Ginsburg, "Large batch training of convolutional networks", 2017): each layer has a rate of its
// own, λ = trust·|w| / (|g| + decay·|w|); m = momentum·m + lr·λ·(g + decay·w); w -= m. λ is 1 for parameters of one
// dimension (biases, normalization) and where a norm is zero.
#include "trireme/optim/clones.h"
#include "trireme/optim/kinds.h"
#include "trireme/optim/norms.h"

namespace trireme::optim {
namespace {

struct Numbers {
  float rate;  // lr times the layer's own rate
  float momentum, weight_decay;
};

TRIREME_CLONES
void step(float* __restrict w, const float* __restrict g, float* __restrict m, std::size_t n, const Numbers& numbers) {
  const Numbers c = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = c.momentum * m[i] + c.rate * (g[i] + c.weight_decay * w[i]);
    w[i] -= m[i];
  }
}

class Lars : public Rule {
 public:
  explicit Lars(const Options& options) : Rule({.quantities = {{"momentum"}}, .measures = true}), options_(options) {}

  Squares measure(const Piece& x) const override { return {block_square(x.w, x.n), block_square(x.g, x.n)}; }
  double ratio(double w, double g) const override {
    return w > 0 && g > 0 ? options_.trust * w / (g + options_.weight_decay * w) : 1;
  }
  void apply(const Piece& x, double ratio) const override {
    step(x.w, x.g, x.kept[0], x.n,
         {static_cast<float>(lr() * ratio), static_cast<float>(options_.momentum),
          static_cast<float>(options_.weight_decay)});
  }

 private:
  void set_step(double, std::uint64_t) override {}

  const Options options_;
};

}  // namespace

constinit const OptimizerKind kLars{
    .name = "lars",
    .summary = "momentum with a rate per layer, for convolutional networks in large batches",
    .momentum = true,
    .trust = true,
    .lr = 10,
    .make = make_rule<Lars>};

}  // namespace trireme::optim

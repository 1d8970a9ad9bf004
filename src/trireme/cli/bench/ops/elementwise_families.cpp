// Functions of each number: ops/elementwise.
#include "trireme/cli/bench/ops/row_passes.h"
#include "trireme/ops/elementwise/activation.h"

namespace trireme::bench {
namespace {

template <ops::Activation kActivation>
std::vector<Contender> activation_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<RowPassData>(of);
  if (pass == ops::Pass::forward) {
    return {{"fused", 0, [it] { ops::activation_forward(kActivation, it->size, it->x.data(), it->y.data()); }}};
  }
  return {{"fused", 0,
           [it] { ops::activation_backward(kActivation, it->size, it->x.data(), it->d_y.data(), it->d_x.data()); }}};
}

// Backward is the same function of the gradient.
std::vector<Contender> dropout_contenders(const OpShape& of, ops::Pass) {
  constexpr float kShare = 0.1f;
  constexpr uint64_t kSeed = 7;
  const auto it = std::make_shared<RowPassData>(of);
  return {{"fused", 0, [it] { ops::dropout(it->size, kShare, kSeed, it->x.data(), nullptr, it->y.data()); }}};
}

}  // namespace

OpFamily relu_family() {
  return row_pass_family(
      "relu", "16384x64",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {1, 2, 1, 3});
      },
      activation_contenders<ops::Activation::relu>);
}

// Φ(x) is four operations, its derivative five.
OpFamily gelu_family() {
  return row_pass_family(
      "gelu", "1024x1024",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {5, 2, 11, 3});
      },
      activation_contenders<ops::Activation::gelu>);
}

// The random numbers are not counted.
OpFamily dropout_family() {
  return row_pass_family(
      "dropout", "1024x256",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {2, 2, 2, 2});
      },
      dropout_contenders);
}

}  // namespace trireme::bench

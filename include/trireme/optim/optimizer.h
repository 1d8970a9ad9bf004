// An optimizer on flat memory: how a step moves weights by their gradient, and what it keeps beside them. One file per
// optimizer; trainer, parameter servers and co-simulation step by these and nothing else.
//
//   auto rule = find_optimizer("adam")->make({.weight_decay = 0.01});
//   rule->begin(lr, step);              // once for each step of a tensor, or of many alike
//   rule->apply(piece);                 // pieces of any length, in any order, on any threads
//
// An element's result depends on that element alone, and where a step looks at norms on sums over fixed blocks, so that
// neither pieces, threads nor vector width change a bit. Optimizers with norms: whole_tensor.h.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace trireme::optim {

// What users set, as LibTorch calls it and with its defaults; each optimizer looks at its own.
struct Options {
  double weight_decay = 0;  // added to the gradient, as a share of the weight; adamw shrinks weights instead
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool amsgrad = false;
  double alpha = 0.99;  // what a running mean of squares keeps
  bool centered = false;
  double lr_decay = 0, initial_accumulator = 0;
  double trust = 0.001;  // the share of a layer's norm that one step may move it
  bool operator==(const Options&) const = default;
};

// One of the quantities that are kept of each weight: its name in checkpoints, and its value at first.
struct Quantity {
  std::string_view name;
  float first = 0;
};
inline constexpr std::size_t kMostQuantities = 8;

// Weights, as many gradients, and of each quantity as many values. Nothing overlaps.
struct Piece {
  float* w = nullptr;
  const float* g = nullptr;
  std::array<float*, kMostQuantities> kept{};
  std::size_t n = 0;

  // Elements [begin, begin + count).
  Piece part(std::size_t begin, std::size_t count) const {
    Piece some{w + begin, g + begin, kept, count};
    for (float*& one : some.kept) one = one ? one + begin : nullptr;
    return some;
  }
};

// Sums of squares of two vectors: weights, and what the optimizer weighs them against.
struct Squares {
  double weight = 0, other = 0;
};

class Rule {
 public:
  virtual ~Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  const std::vector<Quantity>& quantities() const { return quantities_; }
  // Whether it matters which step it is; checkpoints then have the number.
  bool counted() const { return counted_; }
  // Whether measure() must be called for all of a tensor before apply().
  bool measures() const { return measures_; }

  // The step that follows calls are of; `step` counts from 1. Not while another thread is in a call.
  void begin(double lr, std::uint64_t step) {
    if (lr == lr_ && step == step_) return;
    set_step(lr, step);
    lr_ = lr;
    step_ = step;
  }
  // Moves weights and quantities; `ratio` is that of the tensor, where it measures.
  virtual void apply(const Piece& piece, double ratio = 1) const = 0;

  // Of at most kBlock elements, each of a tensor once in a step; may move quantities.
  virtual Squares measure(const Piece&) const { return {}; }
  // The tensor's own factor, of both norms.
  virtual double ratio(double /*weight*/, double /*other*/) const { return 1; }

 protected:
  struct Kept {
    std::vector<Quantity> quantities;
    bool counted = false, measures = false;
  };
  explicit Rule(Kept kept)
      : quantities_(std::move(kept.quantities)), counted_(kept.counted), measures_(kept.measures) {}
  double lr() const { return lr_; }

 private:
  virtual void set_step(double lr, std::uint64_t step) = 0;

  const std::vector<Quantity> quantities_;
  const bool counted_, measures_;
  double lr_ = 0;
  std::uint64_t step_ = ~std::uint64_t{0};  // none yet
};
using MadeRule = std::unique_ptr<Rule>;

}  // namespace trireme::optim

// What a server does with a gradient. Formulas are those of train/optimizers; state lives beside the weights.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace trireme::ps {

namespace kernels {
struct Round;
}

// Chosen once for a job, by the worker that declares it first. The learning rate comes with every push.
struct UpdateSpec {
  std::string name = "sgd";
  double momentum = 0.9;
  double weight_decay = 0;  // added to the gradient; adamw shrinks the weights instead
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const UpdateSpec&) const = default;
};

// Called for pieces of a tensor, in any order, so every element must depend on itself alone. `state` has as many spans
// as the update wants, zero at first, each as long as the weights; `step` counts the updates from 1.
struct Piece {
  std::span<float> weights;
  std::span<const float> gradient;
  std::span<const std::span<float>> state;
  double lr;
  std::uint64_t step;
};
using UpdateFunction = std::function<void(const Piece&)>;

struct Update {
  int states = 0;        // at most kMostStates
  UpdateFunction apply;  // called by the server's thread alone; an exception ends the server
  // Optional: the same for a whole round in one pass over memory, which is faster; `m` is the first state.
  std::function<void(const kernels::Round&, double lr)> round;
};
inline constexpr int kMostStates = 8;

// Makes an update from its options; a user's own are given to each server by name.
using UpdateMaker = std::function<Update(const UpdateSpec&)>;
using UpdateMakers = std::map<std::string, UpdateMaker, std::less<>>;

// sgd, momentum, adam, adamw; mean: weights become the mean of a round's gradients.
const UpdateMakers& built_in_updates();
// From `own`, else a built-in one. Throws ConfigError that lists the names, or says which value is wrong.
Update make_update(const UpdateSpec& spec, const UpdateMakers& own = {});

}  // namespace trireme::ps

// What a server does with a gradient: an optimizer of room optim, which trainers step by as well, or a function of a
// user's own. State lies beside the weights.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/optim/optimizer.h"

namespace trireme::ps {

// Chosen once for a job, by the worker that declares it first. The learning rate comes with every push.
struct UpdateSpec {
  std::string name = "sgd";
  optim::Options options;
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
  // In its place: an optimizer, whose quantities are the states.
  std::shared_ptr<optim::Rule> rule = {};

  // By whichever of both it is.
  void step(const Piece& piece) const;
};
inline constexpr int kMostStates = optim::kMostQuantities;

// Makes an update from its options; a user's own are given to each server by name.
using UpdateMaker = std::function<Update(const UpdateSpec&)>;
using UpdateMakers = std::map<std::string, UpdateMaker, std::less<>>;

// Those that every server has: the optimizers that step by element, and mean, by which weights become the mean of a
// round's gradients.
std::vector<std::string_view> update_names();
bool has_update(std::string_view name);
// What an update of such a name keeps of each weight, in the order of its states.
std::vector<optim::Quantity> quantities_of(const UpdateSpec& spec);

// From `own`, else of those. Throws ConfigError that lists the names, or says which value is wrong.
Update make_update(const UpdateSpec& spec, const UpdateMakers& own = {});

}  // namespace trireme::ps

// Which choices of a training run go together: the rules that `trireme train` refuses by and that a search of plans
// keeps to.
#pragma once
#include <optional>
#include <string>

#include "trireme/sync/strategies.h"

namespace trireme::sync {

// As on the command line.
struct Combination {
  std::string strategy = "allreduce", servers = "colocated";
  std::string compress = "none", compress_rule;
  std::string optimizer = "sgd";
  bool nesterov = false, clips = false;
  bool sparse = false;  // rows without a gradient are not pushed
  std::string launch = "processes";
  bool on_mesh = false;  // cut, sharded or recomputed: --mesh, --shard, --recompute or --hybrid was given
  std::string pipeline = "1f1b", shard = "none";
};

// Throws ConfigError that names what does not go with what.
void check_combination(const Combination& chosen);
// The text of that error; nothing where all go together.
std::optional<std::string> refused(const Combination& chosen);

// What of a strategy's exchanges other choices bear on, looked up in what it does (sync/exchange_plan.h).
struct StrategyTraits {
  bool buckets = false;     // gradients travel in backward: bucket plan and lanes count
  bool collective = false;  // something is all-reduced: the algorithm counts
  bool exchanges = false;   // anything at all while it trains
  bool one_memory = false;  // workers must be threads of one process
  bool learners = false;    // several models in each worker
};
StrategyTraits traits_of(const sync::Choice& strategy);

}  // namespace trireme::sync

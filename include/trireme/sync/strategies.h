// The list of strategies, and how one is chosen: NAME[:key=value,…].
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/settings.h"
#include "trireme/compress/rules.h"
#include "trireme/ps/client/client.h"
#include "trireme/sync/exchange/codes.h"
#include "trireme/sync/exchange_plan.h"
#include "trireme/sync/strategy.h"

namespace trireme::sync {

// What a strategy is made for.
struct Context {
  Communicator& world;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;  // of a worker, as far as can be told; 0: nobody said
  // So many of them. Throws ConfigError where nobody said how many they are and `setting`, a share of them, is not 0.
  std::int64_t share_of_steps(double share, std::string_view setting) const;
  std::uint64_t seed = 1;
  // Where there are servers: this worker's end of them, the model in the order of its flat weights, and what they do
  // with gradients.
  ps::Client* client = nullptr;
  std::vector<ps::Tensor> tensors;  // where something is compressed, too
  ps::UpdateSpec update;
  double timeout_s = 60;
  compress::Rules compress;    // what is sent; none: as it is
  double momentum = 0;         // of the optimizer, where a codec takes its place
  bool clips = false;          // what the optimizer steps by has a most norm, which takes the whole mean to know
  bool own_optimizer = false;  // servers cannot do what it does: where they can, they give back the mean instead
  Op exchanged = Op::sum;      // of gradients in backward: sum where each is a share of the mean over the global batch,
                               // avg where each is the mean over the worker's own
  // Of `tensors`, by name: those of which rows without a gradient are not pushed to servers.
  std::vector<std::string> tables = {};
  // What codecs do with a gradient that is not finite and is exchanged in backward.
  NotFinite not_finite = NotFinite::is_an_error;
  Codes codes() const { return {compress, seed, steps_per_epoch, momentum}; }
};

struct StrategyKind {
  std::string_view name;
  std::string_view summary;  // one line
  std::vector<Setting> settings;
  Traits traits = {};
  bool needs_servers = false;
  // What of it may travel as codes (compress/).
  enum class Compresses { nothing, gradients, models } compresses = Compresses::nothing;
  // What theory says of how fast it converges.
  enum class Proven {
    nothing,
    speedup,   // O(1/√(mT)) with m workers after T steps: synchronous, local and gossip SGD
    staleness  // the bound of stale synchronous parallel, in how far workers may be apart
  } proven = Proven::nothing;
  std::unique_ptr<Strategy> (*make)(const Values& values, const Context& context);
  // What a worker exchanges in a step.
  ExchangePlan (*exchange_plan)(const Values& values, const ExchangePlanAt& at);
  // Of Traits, where settings say how many; null: as the traits say.
  int (*learners)(const Values& values) = nullptr;
  // With which settings it gives the weights of one worker that takes the batches of all, to rounding, and where:
  struct Exact {
    std::string_view settings;  // "s=0"; "": whatever they are
    enum class Where {
      always,
      equal_batches,  // all workers have as many samples in every step
      plain_sgd,      // that, and each steps by sgd without momentum and without clipping
    } where = Where::always;
  };
  std::vector<Exact> exact = {};  // none: it never does
};

// All of them, in the order of the documentation.
const std::vector<StrategyKind>& strategies();
// One more, before any is chosen. Throws ConfigError for a name that is taken.
void add_strategy(StrategyKind kind);

// A strategy by name, with its settings.
struct Choice {
  const StrategyKind* kind = nullptr;
  Values values;
  // Throws ConfigError that lists the valid names, settings or values.
  static Choice parse(std::string_view text);
  // "local-sgd:H=8", with every setting.
  std::string text() const { return std::string(kind->name) + values.text(); }
  std::unique_ptr<Strategy> make(const Context& context) const;
  // Those of its row, with these settings.
  Traits traits() const;
  // Replicas of a worker; 1 where the number is found while training.
  int learners() const { return std::max(1, traits().learners); }
  ExchangePlan exchange_plan(const ExchangePlanAt& at) const { return kind->exchange_plan(values, at); }
};

}  // namespace trireme::sync

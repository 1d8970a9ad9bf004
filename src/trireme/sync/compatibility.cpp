#include "trireme/sync/compatibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/text/nearest.h"
#include "trireme/compress/rules.h"
#include "trireme/mesh/schedule.h"
#include "trireme/optim/optimizers.h"
#include "trireme/ps/server/update.h"

namespace trireme::sync {
namespace {

using Compresses = StrategyKind::Compresses;

// Whether servers apply rounds: one mean of all workers' gradients after the other.
bool in_rounds(const Choice& strategy) {
  return std::ranges::any_of(strategy.exchange_plan(ExchangePlanAt{}), [](const Exchange& one) {
    return one.what == Exchange::What::push_pull && !one.clock.async && one.clock.s == 0;
  });
}

void check_codec(const Combination& chosen, const Choice& strategy) {
  const auto& kind = *strategy.kind;
  const compress::Rules rules(chosen.compress, chosen.compress_rule);
  if (rules.none()) return;
  if (kind.compresses == Compresses::nothing) {
    std::vector<std::string_view> able;
    for (const auto& one : sync::strategies()) {
      if (one.compresses != Compresses::nothing) able.push_back(one.name);
    }
    const auto why = strategy.traits().shares_memory || strategy.traits().moves == Traits::Moves::nothing
                         ? "sends nothing that could be compressed"
                         : "mixes models pair by pair, and what codes lose of each would stay in them";
    throw ConfigError(fmt::format("--compress: {} {}; choose {}", kind.name, why, listed(able)));
  }
  // Servers in a compressed job send how weights differ from those before, and no mean.
  if (chosen.clips && in_rounds(strategy)) {
    throw ConfigError(fmt::format(
        "--clip: the norm is of the mean that {} has at its servers, and codes do not bring that back; leave out "
        "--compress, or choose --strategy allreduce",
        kind.name));
  }
  if (!rules.takes_momentum()) return;
  if (kind.compresses == Compresses::models) {
    throw ConfigError(
        fmt::format("--compress {}: for gradients only, but {} sends models", chosen.compress, kind.name));
  }
  if (!optim::is(&optim::OptimizerKind::linear, chosen.optimizer) || chosen.nesterov) {
    throw ConfigError(
        fmt::format("--compress {}: it takes the place of sgd's momentum; use --optimizer sgd without --nesterov",
                    chosen.compress));
  }
}

void check_sparse(const Combination& chosen, const Choice& strategy) {
  const auto& name = strategy.kind->name;
  auto refuse = [](std::string_view why) { throw ConfigError(fmt::format("--sparse: {}", why)); };
  if (!strategy.kind->needs_servers) {
    refuse(fmt::format("rows of gradients are pushed to servers; choose --strategy ps-bsp, ps-ssp or ps-async, not {}",
                       name));
  }
  if (!compress::Rules(chosen.compress, chosen.compress_rule).none()) {
    refuse("codes are of whole gradients; leave out --compress, or --sparse");
  }
  if (!ps::has_update(chosen.optimizer)) {
    refuse(fmt::format("servers step by rows, and know nothing of {}; choose another --optimizer", chosen.optimizer));
  }
  if (chosen.on_mesh) {
    refuse("rows are pushed of a whole model; leave it out with --mesh, --shard, --recompute and --hybrid");
  }
  if (chosen.clips && in_rounds(strategy)) {
    refuse(
        fmt::format("with --clip the servers of {} give back the mean of whole gradients; leave out --clip, or choose "
                    "--strategy ps-async",
                    name));
  }
}

void check_optimizer(std::string_view flag, const Combination& chosen, bool (*takes)(const optim::OptimizerKind&)) {
  std::vector<std::string_view> able;
  for (const auto& one : optim::optimizers()) {
    if (!takes(one)) continue;
    if (one.name == chosen.optimizer) return;
    able.push_back(one.name);
  }
  not_one_of(flag, chosen.optimizer, able);
}

// A schedule whose stages step by themselves.
void check_asynchronous(const Combination& chosen, const pipelines::PipelineKind& kind, bool all_reduces) {
  auto needs = [&](bool holds, std::string_view what) {
    if (!holds) throw ConfigError(fmt::format("--pipeline {} {}", kind.name, what));
  };
  needs(all_reduces, "needs --strategy allreduce: its stages step by themselves");
  needs(!chosen.clips, "goes without --clip: no gradient of the whole model is there at once");
  needs(chosen.shard == "none", "goes without --shard: it keeps several versions of its weights");
}

void check_mesh(const Combination& chosen, const Choice& strategy) {
  const auto traits = traits_of(strategy);
  if (traits.one_memory || traits.learners) {
    throw ConfigError(fmt::format(
        "--strategy {} does not go with --mesh, --shard, --recompute or --hybrid; the other strategies do, over the "
        "data axis",
        strategy.kind->name));
  }
  if (strategy.kind->needs_servers && chosen.servers != "colocated") {
    throw ConfigError("--servers: on a mesh every worker serves its own part of the model; leave it out");
  }
  const auto& kind = pipelines::find_kind(chosen.pipeline);
  const bool all_reduces = strategy.traits().in_backward;
  if (!kind.synchronous) check_asynchronous(chosen, kind, all_reduces);
  if (chosen.shard == "none") return;
  if (!all_reduces) throw ConfigError(fmt::format("--shard needs --strategy allreduce, not {}", strategy.kind->name));
  check_optimizer("--optimizer (with --shard)", chosen, [](const optim::OptimizerKind& one) { return one.by_element; });
  if (kind.splits_backward) {
    throw ConfigError(fmt::format("--shard does not go with --pipeline {}; choose another", kind.name));
  }
  if (chosen.compress != "none" || !chosen.compress_rule.empty()) {
    throw ConfigError("--shard: gradients are scattered as they are; leave out --compress");
  }
}

}  // namespace

void check_combination(const Combination& chosen) {
  const auto strategy = Choice::parse(chosen.strategy);
  // Servers that give back the mean of a round leave the step to the workers, whatever their optimizer.
  const bool means = in_rounds(strategy) && compress::Rules(chosen.compress, chosen.compress_rule).none();
  if (strategy.kind->needs_servers && !means) {
    check_optimizer("--optimizer (with servers)", chosen,
                    [](const optim::OptimizerKind& one) { return one.on_servers(); });
  }
  if (traits_of(strategy).one_memory && chosen.launch != "threads") {
    throw ConfigError(
        fmt::format("--strategy {}: workers must share their memory; add --launch threads", strategy.kind->name));
  }
  check_codec(chosen, strategy);
  if (chosen.sparse) check_sparse(chosen, strategy);
  if (chosen.on_mesh) check_mesh(chosen, strategy);
}

std::optional<std::string> refused(const Combination& chosen) {
  try {
    check_combination(chosen);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

StrategyTraits traits_of(const Choice& strategy) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kSteps = 4096;  // the longest wait between two exchanges, nearly
  StrategyTraits traits;
  traits.learners = strategy.kind->learners != nullptr;
  for (std::int64_t step = 0; step < kSteps && !traits.buckets && !traits.collective; ++step) {
    const auto exchange_plan = strategy.exchange_plan({0, kRanks, step, kSteps / 4, kSteps, 1});
    for (const auto& one : exchange_plan) {
      traits.exchanges |= one.what != Exchange::What::pass;
      traits.buckets |= one.what == Exchange::What::buckets;
      traits.collective |=
          one.what == Exchange::What::buckets || (one.what == Exchange::What::mean && one.of != Exchange::Of::number);
      traits.one_memory |= one.what == Exchange::What::shared;
    }
    if (traits.one_memory || strategy.kind->needs_servers) break;
  }
  return traits;
}

}  // namespace trireme::sync

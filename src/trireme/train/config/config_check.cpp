// Which settings a run may have: each by itself, and what goes together.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/compress/rules.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/mesh/schedule.h"
#include "trireme/net/emulated_network.h"
#include "trireme/operators/settings.h"
#include "trireme/sync/compatibility.h"
#include "trireme/sync/exchange/bucket_plan.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/config/config.h"
#include "trireme/train/config/straggle.h"
#include "trireme/train/learner/recompute.h"
#include "trireme/train/objective/objective.h"

namespace trireme::train {
namespace {

void one_of(std::string_view flag, std::string_view value, std::initializer_list<std::string_view> choices) {
  if (std::ranges::find(choices, value) != choices.end()) return;
  not_one_of(flag, value, views_of(choices));
}

void at_least(std::string_view flag, double value, double least) {
  if (!(value >= least)) throw ConfigError(fmt::format("{}: {} is below {}", flag, value, least));
}

void at_most(std::string_view flag, std::int64_t value, std::int64_t most) {
  if (value > most) throw ConfigError(fmt::format("{}: {} is above {}, the most", flag, value, most));
}

// What is allocated or counted by it must fit.
void check_sizes(const Config& config) {
  at_most("--image-size", config.image_size, 8192);  // of a side; as many pixels as an image may have
  at_most("--length", config.length, 1 << 20);
  at_most("--micro-batches", config.micro_batches, 1 << 20);
  at_most("--chunks", config.chunks, 1024);
  at_most("--lanes", config.lanes, 1024);
  at_most("--replicas", config.replicas, 4096);
  at_most("--keep-last", config.keep_last, 1 << 20);
  at_most("--evals-per-epoch", config.evals_per_epoch, std::numeric_limits<std::int32_t>::max());
}

// More processes or threads than this only wait for each other, and the host may run out of them.
std::int64_t most_here(std::int64_t per_core) { return std::max<std::int64_t>(64, per_core * usable_cores()); }

void check_workers(const Config& config) {
  const auto most = std::min<std::int64_t>(mesh::kMostTrainedWorkers, most_here(32));
  if (config.workers <= most) return;
  const auto told = told_mesh(config);
  const bool by_mesh = told && told->size() == config.workers;
  throw ConfigError(fmt::format("{}: {} workers on this host are above {}, the most for its {} cores; take fewer{}",
                                by_mesh ? "--mesh" : "--workers", config.workers, most, usable_cores(),
                                by_mesh ? ", or say how many are here with --workers" : ""));
}

void check_batch(const Config& config) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (config.batch > kMost) {
    throw ConfigError(fmt::format("--batch: {} is above {}, the most samples of a data set", config.batch, kMost));
  }
  if (config.accumulate > kMost / config.batch) {
    throw ConfigError(fmt::format("--accumulate: {} times --batch {} is above {}, the most samples of a data set",
                                  config.accumulate, config.batch, kMost));
  }
}

sync::Combination combination_of(const Config& config) {
  return {.strategy = config.strategy,
          .servers = config.servers,
          .compress = config.compress,
          .compress_rule = config.compress_rule,
          .optimizer = config.optimizer,
          .nesterov = config.nesterov,
          .clips = config.clip > 0,
          .sparse = config.sparse,
          .launch = config.launch,
          .on_mesh = uses_mesh(config),
          .pipeline = config.pipeline,
          .shard = config.shard};
}

// What only the exchange of gradients within backward can do.
void check_strategy(const Config& config) {
  const auto& kind = *sync::Choice::parse(config.strategy).kind;
  const auto name = kind.name;
  if (kind.traits.in_backward) return;
  auto refuse = [&](std::string_view what) {
    throw ConfigError(fmt::format("{} needs --strategy allreduce, not {}", what, name));
  };
  if (config.deterministic) refuse("--deterministic");
  if (config.sync_batch_norm) refuse("--sync-batch-norm");
  if (kind.needs_servers) {
    if (config.servers != "colocated") parse_integer(config.servers, "--servers (colocated, or a number)", 0, 4096);
    at_least("--replicas", config.replicas, 1);
    if (!(config.lease > 0)) throw ConfigError(fmt::format("--lease: {} is not above 0", config.lease));
  }
}

void check_hybrid(const Config& config, const sync::StrategyKind& strategy) {
  const auto& hybrid = mesh::find_hybrid(config.hybrid);
  if (hybrid.at_servers && !strategy.needs_servers) {
    throw ConfigError(
        fmt::format("--hybrid {}: replicas meet at a parameter server; not --strategy {}", hybrid.name, strategy.name));
  }
  if (!hybrid.gathers_batch) return;
  if (const auto told = told_mesh(config); told && told->data != told->size()) {
    throw ConfigError(
        fmt::format("--hybrid {}: its workers share the data and the last layers; use --mesh data=N", hybrid.name));
  }
  if (!strategy.traits.in_backward || config.shard != "none" || config.compress != "none" || config.clip > 0) {
    throw ConfigError(fmt::format(
        "--hybrid {} goes with --strategy allreduce, and without --shard, --compress and --clip", hybrid.name));
  }
}

// What goes only with some ways to keep the same pace, and to write the weights.
void check_pace(const Config& config) {
  const auto strategy = sync::Choice::parse(config.strategy);
  const auto traits = strategy.traits();
  if (config.checkpoint_every > 0 && traits.own_pace) {
    throw ConfigError(fmt::format(
        "--checkpoint-every: workers of {} are never at the same step; checkpoints come with evaluations: set "
        "--evals-per-epoch",
        strategy.kind->name));
  }
  const bool live = std::ranges::any_of(
      strategy.exchange_plan({}), [](const sync::Exchange& one) { return one.what == sync::Exchange::What::read_on; });
  if (config.device == "cuda" && (traits.shares_memory || live)) {
    throw ConfigError(fmt::format(
        "--strategy {}: others write the weights while a step computes, and those of a GPU are out of their reach; "
        "leave out --device cuda, or choose --strategy ps-async",
        strategy.text()));
  }
}

// What a model on a mesh can do, and what must go without.
void check_parallel(const Config& config) {
  pipelines::find_kind(config.pipeline);
  at_least("--micro-batches", config.micro_batches, 0);
  at_least("--chunks", config.chunks, 1);
  recompute_of(config.recompute);
  one_of("--shard", config.shard, {"none", "optimizer", "gradients", "parameters"});
  (void)mesh::find_hybrid(config.hybrid);  // throws where it is none
  if (config.memory != "auto") parse_size(config.memory, "--memory");
  if (!uses_mesh(config)) return;
  (void)told_mesh(config);  // throws where it is none
  auto refuse = [](std::string_view what, std::string_view instead) {
    throw ConfigError(fmt::format("{} does not go with --mesh, --shard, --recompute or --hybrid; {}", what, instead));
  };
  if (config.deterministic) refuse("--deterministic", "leave it out");
  if (config.autocast != "none") refuse("--autocast", "leave it out");
  if (config.sync_batch_norm) refuse("--sync-batch-norm", "each micro-batch is normalized by itself");
  if (config.micro_batch > 0) refuse("--micro-batch", "say into how many a batch is cut with --micro-batches");
  check_hybrid(config, *sync::Choice::parse(config.strategy).kind);
}

}  // namespace

void check_threads(std::int64_t threads) {
  if (threads >= 0 && threads <= most_here(8)) return;
  throw ConfigError(fmt::format("--threads: {} is not from 0 to {}, the most for the {} cores here", threads,
                                most_here(8), usable_cores()));
}

void check(const Config& config) {
  one_of("--launch", config.launch, {"processes", "threads"});
  one_of("--cores", config.cores, {"own", "any"});
  one_of("--device", config.device, {"cpu", "cuda"});
  one_of("--on-nan", config.on_nan, {"stop", "skip"});
  one_of("--autocast", config.autocast, {"none", "bf16"});
  operators::settings_of(config.ops);
  if (config.op_memory != "any" && parse_size(config.op_memory, "--op-memory") == 0) {
    throw ConfigError("--op-memory: 0 bytes are too few; write a size such as 64M, or any");
  }
  one_of("--exchange", config.exchange, {"auto", "background", "inline"});
  check_sizes(config);
  sync::parse_bucket_plan(config.bucket_plan);
  Straggle{config.straggle};
  check_strategy(config);
  check_parallel(config);
  if (config.deterministic && !compress::Rules(config.compress, config.compress_rule).none()) {
    throw ConfigError("--deterministic: codes depend on the number of workers; leave out --compress");
  }
  check_pace(config);
  sync::check_combination(combination_of(config));
  at_least("--batch", config.batch, 1);
  at_least("--epochs", config.epochs, 1);
  at_least("--accumulate", config.accumulate, 1);
  at_least("--workers", config.workers, 1);
  at_least("--lanes", config.lanes, 1);
  at_least("--keep-last", config.keep_last, 1);
  at_least("--log-every", config.log_every, 1);
  at_least("--evals-per-epoch", config.evals_per_epoch, 1);
  at_least("--length", config.length, 1);
  at_least("--clip", config.clip, 0);
  at_least("--warmup", config.warmup, 0);
  if (!(config.lr >= 0)) throw ConfigError(fmt::format("--lr: {} is below 0", config.lr));
  if (!(config.timeout > 0)) throw ConfigError(fmt::format("--timeout: {} is not above 0", config.timeout));
  check_objective(config.loss, config.metric, config.target);
  check_threads(config.threads);
  check_workers(config);
  check_batch(config);
  if (config.micro_batch > 0 && config.batch % config.micro_batch != 0) {
    throw ConfigError(fmt::format("--micro-batch {} does not divide --batch {}", config.micro_batch, config.batch));
  }
  if (config.deterministic && config.sync_batch_norm) {
    throw ConfigError("--deterministic normalizes each micro-batch by itself: leave out --sync-batch-norm");
  }
  auto network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
  if (network.hosts > 0 && config.launch == "threads") {
    throw ConfigError("--hosts: threads share one host; leave out --launch threads");
  }
  if (config.launch == "threads" && config.device == "cuda" && config.workers > 1 &&
      sync::Choice::parse(config.strategy).traits().in_backward) {
    throw ConfigError(
        "--device cuda: LibTorch runs all backward passes of a process on one thread per device, and workers would "
        "wait "
        "for each other there; leave out --launch threads");
  }
  if (config.launch == "threads" && config.transport != "auto" && config.transport != "inproc") {
    throw ConfigError(fmt::format("--launch threads needs no transport; leave out --transport {}", config.transport));
  }
}

}  // namespace trireme::train

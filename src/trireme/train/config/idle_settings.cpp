#include "trireme/train/config/idle_settings.h"

#include <algorithm>

#include "trireme/data/open.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/schedule.h"
#include "trireme/operators/settings.h"
#include "trireme/optim/optimizers.h"
#include "trireme/sync/strategies.h"

namespace trireme::train {
namespace {

bool at_servers(const Config& config) { return sync::Choice::parse(config.strategy).kind->needs_servers; }

// In buckets, while backward runs; shards are scattered instead.
bool exchanges_buckets(const Config& config) {
  return sync::Choice::parse(config.strategy).traits().in_backward && config.shard == "none";
}

bool all_reduces_anything(const Config& config) { return !at_servers(config) || uses_mesh(config); }

// An optimizer that is not known is refused elsewhere.
template <bool optim::OptimizerKind::*Trait>
bool optimizer_has(const Config& config) {
  const auto* kind = optim::find_optimizer(config.optimizer);
  return !kind || kind->*Trait;
}
constexpr auto* has_moments = optimizer_has<&optim::OptimizerKind::moments>;
constexpr auto* has_momentum = optimizer_has<&optim::OptimizerKind::momentum>;
constexpr auto* has_trust = optimizer_has<&optim::OptimizerKind::trust>;
constexpr auto* has_epsilon = optimizer_has<&optim::OptimizerKind::epsilon>;
constexpr auto* has_mean_square = optimizer_has<&optim::OptimizerKind::mean_square>;
constexpr auto* has_accumulators = optimizer_has<&optim::OptimizerKind::accumulates>;

bool gathers_batch(const Config& config) { return mesh::find_hybrid(config.hybrid).gathers_batch; }

// Of the mesh that was told; auto may choose any.
template <typename Holds>
bool mesh_may(const Config& config, const Holds& holds) {
  const auto told = told_mesh(config);
  return told ? holds(*told) : config.mesh == "auto";
}

bool in_chunks(const Config& config) { return uses_mesh(config) && pipelines::find_kind(config.pipeline).in_chunks; }

bool chooses_operators(const Config& config) {
  return operators::settings_of(config.ops).operators == operators::Operators::automatic && !config.deterministic;
}

bool is_split(const Config& config) {
  return in_chunks(config) || mesh_may(config, [](const mesh::MeshShape& shape) { return shape.pipe > 1; });
}

bool splits_tensors(const Config& config) {
  return !gathers_batch(config) && mesh_may(config, [](const mesh::MeshShape& shape) { return shape.tensor > 1; });
}

// One is as without any; the hybrid gathers a batch at once.
bool cuts_batches(const Config& config) {
  return config.micro_batches <= 1 || (uses_mesh(config) && !gathers_batch(config));
}

bool syncs_vertically(const Config& config) {
  return !config.vertical_sync || (uses_mesh(config) && !pipelines::find_kind(config.pipeline).synchronous);
}

// Data that nobody knows is refused elsewhere.
template <unsigned Option>
bool data_heeds(const Config& config) {
  const auto* source = data::find_source(config.data);
  return !source || (source->heeds & Option) != 0;
}

struct IdleRow {
  std::string_view key;
  bool (*acts)(const Config&);
  std::string_view needs;
  bool optim::OptimizerKind::*of_optimizer = nullptr;  // needs one with this trait instead
};

constexpr std::string_view kServers = "a --strategy ps-*", kMesh = "--mesh, --shard, --recompute or --hybrid",
                           kBuckets = "--strategy allreduce, or with --shard",
                           kAllReduce = "an all-reduce: on a --mesh, or with another --strategy than ps-*";

constexpr IdleRow kIdleRows[] = {
    {"data.image_size", data_heeds<data::kImageSize>, "a folder of images as --data"},
    {"data.length", data_heeds<data::kLength>, "text as --data"},
    {"data.label_column", data_heeds<data::kLabelColumn>, "a CSV file as --data"},
    {"data.test_fraction", data_heeds<data::kTestFraction>, "--data that has no test part"},
    {"sync.servers", at_servers, kServers},
    {"sync.replicas", at_servers, kServers},
    {"sync.lease", at_servers, kServers},
    {"parallel.split", is_split, "a --mesh with pipe above 1"},
    {"parallel.micro_batches", cuts_batches, "--mesh, --shard, --recompute or --hybrid distbelief"},
    {"parallel.pipeline", uses_mesh, kMesh},
    {"parallel.chunks", in_chunks, "--pipeline interleaved on a --mesh"},
    {"parallel.vertical_sync", syncs_vertically, "--pipeline pipedream on a --mesh"},
    {"parallel.tensor_rule", splits_tensors, "a --mesh with tensor above 1"},
    {"parallel.memory", uses_mesh, kMesh},
    {"train.op_memory", chooses_operators, "--ops auto, or with --deterministic"},
    {"out.print_ops",
     [](const Config& config) { return chooses_operators(config) || config.ops.starts_with("reference"); },
     "--ops reference, or auto without --deterministic"},
    {"train.beta1", has_moments, "", &optim::OptimizerKind::moments},
    {"train.beta2", has_moments, "", &optim::OptimizerKind::moments},
    {"train.epsilon", has_epsilon, "", &optim::OptimizerKind::epsilon},
    {"train.alpha", has_mean_square, "", &optim::OptimizerKind::mean_square},
    {"train.centered", has_mean_square, "", &optim::OptimizerKind::mean_square},
    {"train.lr_decay", has_accumulators, "", &optim::OptimizerKind::accumulates},
    {"train.initial_accumulator", has_accumulators, "", &optim::OptimizerKind::accumulates},
    {"train.trust", has_trust, "", &optim::OptimizerKind::trust},
    {"train.momentum", has_momentum, "", &optim::OptimizerKind::momentum},
    {"exchange.bucket_plan", exchanges_buckets, kBuckets},
    {"exchange.turn", exchanges_buckets, kBuckets},
    {"exchange.algorithm", all_reduces_anything, kAllReduce},
    {"exchange.lanes", all_reduces_anything, kAllReduce},
};

}  // namespace

std::optional<std::string> idle_without(const Config& config, std::string_view key) {
  const auto* row = std::ranges::find(kIdleRows, key, &IdleRow::key);
  if (row == std::end(kIdleRows) || row->acts(config)) return std::nullopt;
  if (row->of_optimizer) return "--optimizer " + optim::names_with(row->of_optimizer);
  return std::string(row->needs);
}

}  // namespace trireme::train

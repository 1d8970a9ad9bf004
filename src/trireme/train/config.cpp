#include "trireme/train/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/compress/rules.h"
#include "trireme/net/cores.h"
#include "trireme/net/emulate/network.h"
#include "trireme/pipeline/schedule.h"
#include "trireme/plan/bucket_plan.h"
#include "trireme/plan/mesh_shape.h"
#include "trireme/plan/together.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/recompute.h"
#include "trireme/train/straggle.h"

namespace trireme::train {
namespace {

using C = Config;

constexpr std::array kFields{
    Field{"model.name", "--model", "a TorchScript file (*.pt; loading it runs its code), or one of", &C::model},
    Field{"data.name", "--data", "a data set by name, synthetic:…, or a path; see trireme data list", &C::data},
    Field{"data.root", "--data-root", "where named data sets lie, as ROOT/NAME", &C::data_root},
    Field{"data.image_size", "--image-size", "image folders: scale to this square (0: as they are)", &C::image_size},
    Field{"data.length", "--length", "text: symbols in a sequence", &C::length},
    Field{"data.test_fraction", "--test-fraction", "held out where the data has no test part", &C::test_fraction},
    Field{"data.label_column", "--label-column", "CSV: a name or number (default the last)", &C::label_column},
    Field{"data.augment", "--augment", "shift and mirror training images at random", &C::augment},
    Field{"train.batch", "--batch", "samples per worker and backward", &C::batch},
    Field{"train.epochs", "--epochs", "passes over the training data", &C::epochs},
    Field{"train.steps", "--steps", "stop after this many steps (0: by epochs)", &C::steps},
    Field{"train.accumulate", "--accumulate", "backwards per exchange and step", &C::accumulate},
    Field{"train.micro_batch", "--micro-batch", "samples per forward pass (0: the batch)", &C::micro_batch},
    Field{"train.optimizer", "--optimizer", "sgd, adam, adamw, lars or lamb", &C::optimizer},
    Field{"train.lr", "--lr", "learning rate, the highest of its schedule", &C::lr},
    Field{"train.schedule", "--schedule", "constant, step:E,…,GAMMA, cosine, one-cycle or plateau:PATIENCE,FACTOR",
          &C::schedule},
    Field{"train.warmup", "--warmup", "epochs of linear warm-up", &C::warmup},
    Field{"train.reference_batch", "--reference-batch", "scale the rate by global batch / this (0: do not)",
          &C::reference_batch},
    Field{"train.momentum", "--momentum", "of sgd and lars", &C::momentum},
    Field{"train.nesterov", "--nesterov", "of sgd: look ahead", &C::nesterov},
    Field{"train.weight_decay", "--weight-decay", "of every parameter", &C::weight_decay},
    Field{"train.beta1", "--beta1", "of adam, adamw and lamb", &C::beta1},
    Field{"train.beta2", "--beta2", "of adam, adamw and lamb", &C::beta2},
    Field{"train.epsilon", "--epsilon", "of adam, adamw and lamb", &C::epsilon},
    Field{"train.trust", "--trust", "lars: share of a layer's norm a step may move it", &C::trust},
    Field{"train.clip", "--clip", "most norm of all gradients together (0: any)", &C::clip},
    Field{"train.autocast", "--autocast", "bf16 for products and convolutions, or none", &C::autocast},
    Field{"train.sync_batch_norm", "--sync-batch-norm", "batch normalization over all workers' samples",
          &C::sync_batch_norm},
    Field{"train.on_nan", "--on-nan", "stop or skip the step when a gradient is not finite", &C::on_nan},
    Field{"train.deterministic", "--deterministic",
          "bit-identical for any workers (1, 2, 4, …), algorithm, transport and plan; "
          "with --micro-batch",
          &C::deterministic},
    Field{"train.seed", "--seed", "of weights, order and dropout", &C::seed},
    Field{"train.target", "--target", "note when the test accuracy first reaches this share (0: none)", &C::target},
    Field{"train.evals_per_epoch", "--evals-per-epoch", "how often an epoch the test accuracy is measured",
          &C::evals_per_epoch},
    Field{"sync.strategy", "--strategy", "NAME[:key=value,…]: how workers synchronize; one of", &C::strategy},
    Field{"sync.servers", "--servers", "ps-*: as many processes, or colocated: one in each worker", &C::servers},
    Field{"sync.replicas", "--replicas", "ps-*: servers that keep a copy of each weight", &C::replicas},
    Field{"sync.lease", "--lease", "ps-*: seconds; who is silent for longer is taken for dead", &C::lease},
    Field{"sync.compress", "--compress", "CODEC[:value][,key=value,…]: what is sent is made small; one of",
          &C::compress},
    Field{"sync.compress_rule", "--compress-rule", "codecs by parameter name: 'fc*=topk:0.01,*.bias=none'",
          &C::compress_rule},
    Field{"sync.sparse", "--sparse", "ps-*: of embeddings' gradients push the rows that a step touched", &C::sparse},
    Field{"sync.straggle", "--straggle", "slow workers down: rank=1,factor=3 or random,p=0.1,ms=50", &C::straggle},
    Field{"parallel.mesh", "--mesh", "data=N,pipe=N,tensor=N: replicas, stages, parts of layers; or auto", &C::mesh},
    Field{"parallel.pipeline", "--pipeline", "how stages take turns; one of", &C::pipeline},
    Field{"parallel.micro_batches", "--micro-batches", "into which a batch is cut; 0: 8 for a pipeline, else 1",
          &C::micro_batches},
    Field{"parallel.chunks", "--chunks", "interleaved: parts of the model in each stage", &C::chunks},
    Field{"parallel.vertical_sync", "--vertical-sync", "pipedream: all stages use the weights the first one had",
          &C::vertical_sync},
    Field{"parallel.split", "--split", "auto: stages by measured time; or NAME,NAME…: pieces they begin at", &C::split},
    Field{"parallel.tensor_rule", "--tensor-rule", "how layers are cut: 'fc1=column,fc2=row'; auto: as the model says",
          &C::tensor_rule},
    Field{"parallel.shard", "--shard", "over the data axis: none, optimizer, gradients or parameters", &C::shard},
    Field{"parallel.recompute", "--recompute", "activations: none, every:N pieces keep their inputs only, or auto",
          &C::recompute},
    Field{"parallel.hybrid", "--hybrid", "none, alexnet or distbelief; see docs/parallel.md", &C::hybrid},
    Field{"parallel.memory", "--memory", "of each worker, for what must fit: 2G; auto: its share of what is free",
          &C::memory},
    Field{"exchange.bucket_plan", "--bucket-plan", "cap:25, tensor, one, mgwfbp or optimal", &C::bucket_plan},
    Field{"exchange.algorithm", "--algorithm", "of all-reduce; see trireme check", &C::algorithm},
    Field{"exchange.transport", "--transport", "auto, shm or tcp", &C::transport},
    Field{"exchange.turn", "--exchange", "auto, background or inline", &C::exchange},
    Field{"exchange.lanes", "--lanes", "independent channels used in turn", &C::lanes},
    Field{"exchange.timeout", "--timeout", "seconds a worker may be waited for", &C::timeout},
    Field{"run.workers", "--workers", "workers on this host", &C::workers},
    Field{"run.launch", "--launch", "workers are processes or threads", &C::launch},
    Field{"run.threads", "--threads", "compute threads per worker (0: cores / workers)", &C::threads},
    Field{"run.cores", "--cores", "own: workers that fill the host keep to their share of its cores; any", &C::cores},
    Field{"run.device", "--device", "cpu or cuda", &C::device},
    Field{"run.hosts", "--hosts", "ns:N emulates N hosts here, the workers spread over them; needs root", &C::hosts},
    Field{"run.bandwidth", "--bandwidth", "of each emulated host's link, each way: 100mbit, 12.5MB", &C::bandwidth},
    Field{"run.latency", "--latency", "one way between emulated hosts: 0.5ms, 200us", &C::latency},
    Field{"out.dir", "--out", "folder for all that is written (default runs/TIME-MODEL-DATA)", &C::out},
    Field{"out.keep_last", "--keep-last", "checkpoints kept, besides the best", &C::keep_last},
    Field{"out.checkpoint_every", "--checkpoint-every", "steps between checkpoints (0: each epoch)",
          &C::checkpoint_every},
    Field{"out.log_every", "--log-every", "steps between lines of metrics.jsonl", &C::log_every},
    Field{"out.trace_steps", "--trace-steps", "steps in trace.json (0: no trace)", &C::trace_steps},
};

void set_member(Config& config, const Field& field, std::string_view text) {
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(config.*member)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          config.*member = text;
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          config.*member = parse_integer(text, field.flag, 0, std::int64_t{1} << 53);
        } else if constexpr (std::is_same_v<Value, double>) {
          config.*member = parse_number(text, field.flag);
        } else if (text == "true" || text == "1" || text == "yes") {
          config.*member = true;
        } else if (text == "false" || text == "0" || text == "no") {
          config.*member = false;
        } else {
          throw ConfigError(fmt::format("{}: '{}' is neither true nor false", field.flag, text));
        }
      },
      field.member);
}

// Letters to change, add or drop to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = std::exchange(row[j], next);
    }
  }
  return row.back();
}

std::string json_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void merge_under(Config& config, const nlohmann::json& json, const std::string& prefix, std::string_view where) {
  for (const auto& [name, value] : json.items()) {
    std::string key = prefix.empty() ? name : prefix + "." + name;
    if (value.is_object()) {
      merge_under(config, value, key, where);
      continue;
    }
    try {
      set(config, key, json_text(value));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", where, error.what()));
    }
  }
}

void one_of(std::string_view flag, std::string_view value, std::initializer_list<std::string_view> choices) {
  if (std::ranges::find(choices, value) != choices.end()) return;
  throw ConfigError(fmt::format("{}: '{}' is not one of: {}", flag, value, fmt::join(choices, ", ")));
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
std::int64_t most_here(std::int64_t per_core) { return std::max<std::int64_t>(64, per_core * net::usable_cores()); }

void check_workers(const Config& config) {
  constexpr std::int64_t kMost = 4096;
  const auto most = std::min(kMost, most_here(32));
  if (config.workers <= most) return;
  const auto told = told_mesh(config);
  const bool by_mesh = told && told->size() == config.workers;
  throw ConfigError(fmt::format("{}: {} workers on this host are above {}, the most for its {} cores; take fewer{}",
                                by_mesh ? "--mesh" : "--workers", config.workers, most, net::usable_cores(),
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

plan::Together together_of(const Config& config) {
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
  if (name == "allreduce") return;
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

void check_hybrid(const Config& config, const sync::Kind& strategy) {
  if (config.hybrid == "distbelief" && !strategy.needs_servers) {
    throw ConfigError(
        fmt::format("--hybrid distbelief: replicas meet at a parameter server; not --strategy {}", strategy.name));
  }
  if (config.hybrid != "alexnet") return;
  if (const auto told = told_mesh(config); told && told->data != told->size()) {
    throw ConfigError("--hybrid alexnet: its workers share the data and the last layers; use --mesh data=N");
  }
  if (strategy.name != "allreduce" || config.shard != "none" || config.compress != "none" || config.clip > 0) {
    throw ConfigError("--hybrid alexnet goes with --strategy allreduce, and without --shard, --compress and --clip");
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
      strategy.course({}), [](const sync::Exchange& one) { return one.what == sync::Exchange::What::read_on; });
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
  one_of("--hybrid", config.hybrid, {"none", "alexnet", "distbelief"});
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

std::optional<plan::MeshShape> told_mesh(const Config& config) {
  if (config.mesh.empty() || config.mesh == "auto") return std::nullopt;
  return plan::parse_mesh(config.mesh);
}

bool uses_mesh(const Config& config) {
  return !config.mesh.empty() || config.shard != "none" || config.recompute != "none" || config.hybrid != "none";
}

std::int64_t micro_batches_of(const Config& config) {
  if (config.micro_batches > 0) return config.micro_batches;
  const auto told = told_mesh(config);
  const bool stages = told ? told->pipe > 1 : config.mesh == "auto";
  return stages ? plan::kMicroBatches : 1;
}

void apply_hybrid(Config& config) {
  if (config.hybrid != "distbelief") return;
  if (config.strategy == "allreduce") config.strategy = "ps-async";
  if (config.mesh.empty()) config.mesh = "data=2,pipe=2";
}

std::span<const Field> fields() { return kFields; }

const Field& find_field(std::string_view name) {
  auto matches = [&](const Field& field) { return field.key == name || field.flag.substr(2) == name; };
  auto found = std::ranges::find_if(kFields, matches);
  if (found != kFields.end()) return *found;
  auto near = std::ranges::min_element(kFields, {}, [&](const Field& field) {
    return std::min(distance(name, field.key), distance(name, field.flag.substr(2)));
  });
  throw ConfigError(fmt::format("there is no setting '{}'; did you mean {} ({})?", name, near->key, near->flag));
}

void set(Config& config, std::string_view key, std::string_view text) {
  constexpr std::string_view kArguments = "model.args.";
  if (key.starts_with(kArguments) && key.size() > kArguments.size()) {
    config.model_args[std::string(key.substr(kArguments.size()))] = text;
  } else {
    set_member(config, find_field(key), text);
  }
}

std::string value_text(const Config& config, const Field& field) {
  return std::visit([&](auto member) { return fmt::format("{}", config.*member); }, field.member);
}

nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json;
  for (const auto& field : kFields) {
    auto dot = field.key.find('.');
    auto& place = json[std::string(field.key.substr(0, dot))][std::string(field.key.substr(dot + 1))];
    std::visit([&](auto member) { place = config.*member; }, field.member);
  }
  json["model"]["args"] = config.model_args;
  return json;
}

void merge(Config& config, const nlohmann::json& json, std::string_view where) {
  if (!json.is_object()) throw ConfigError(fmt::format("{}: not a table of settings", where));
  merge_under(config, json, "", where);
}

void merge_environment(Config& config) {
  for (const auto& field : kFields) {
    std::string name = "TRIREME_";
    for (char letter : field.flag.substr(2)) name += letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
    const char* value = std::getenv(name.c_str());
    if (!value || !*value) continue;
    try {
      set_member(config, field, value);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("environment variable {}: {}", name, error.what()));
    }
  }
}

void check_threads(std::int64_t threads) {
  if (threads >= 0 && threads <= most_here(8)) return;
  throw ConfigError(fmt::format("--threads: {} is not from 0 to {}, the most for the {} cores here", threads,
                                most_here(8), net::usable_cores()));
}

void check(const Config& config) {
  one_of("--launch", config.launch, {"processes", "threads"});
  one_of("--cores", config.cores, {"own", "any"});
  one_of("--device", config.device, {"cpu", "cuda"});
  one_of("--on-nan", config.on_nan, {"stop", "skip"});
  one_of("--autocast", config.autocast, {"none", "bf16"});
  one_of("--exchange", config.exchange, {"auto", "background", "inline"});
  check_sizes(config);
  plan::parse_bucket_plan(config.bucket_plan);
  Straggle{config.straggle};
  check_strategy(config);
  check_parallel(config);
  if (config.deterministic && !compress::Rules(config.compress, config.compress_rule).none()) {
    throw ConfigError("--deterministic: codes depend on the number of workers; leave out --compress");
  }
  check_pace(config);
  plan::check_together(together_of(config));
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
  if (!(config.lr > 0)) throw ConfigError(fmt::format("--lr: {} is not above 0", config.lr));
  if (!(config.timeout > 0)) throw ConfigError(fmt::format("--timeout: {} is not above 0", config.timeout));
  if (!(config.target >= 0 && config.target <= 1)) {
    throw ConfigError(fmt::format("--target: {} is not a share of the test data, from 0 to 1", config.target));
  }
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
  if (config.launch == "threads" && config.device == "cuda" && config.workers > 1 && config.strategy == "allreduce") {
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

#include "trireme/train/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/train/optimizers/optimizer.h"

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
    Field{"train.loss", "--loss", "NAME[:key=value]; auto: by the data, cross-entropy or mse; one of", &C::loss},
    Field{"train.metric", "--metric",
          "NAME[,NAME…]: how tests are judged, the first says which is best; auto: as the loss; of", &C::metric},
    Field{"train.optimizer", "--optimizer", "how a gradient becomes a step; one of", &C::optimizer},
    Field{"train.lr", "--lr", "learning rate, the highest of its schedule (0: the optimizer's own, of sgd 0.1)",
          &C::lr},
    Field{"train.schedule", "--schedule", "constant, step:E,…,GAMMA, cosine, one-cycle or plateau:PATIENCE,FACTOR",
          &C::schedule},
    Field{"train.warmup", "--warmup", "epochs of linear warm-up", &C::warmup},
    Field{"train.reference_batch", "--reference-batch", "scale the rate by global batch / this (0: do not)",
          &C::reference_batch},
    Field{"train.momentum", "--momentum", "of sgd, rmsprop and lars (-1: 0.9, of rmsprop 0)", &C::momentum},
    Field{"train.nesterov", "--nesterov", "of sgd: look ahead", &C::nesterov},
    Field{"train.weight_decay", "--weight-decay", "of every parameter", &C::weight_decay},
    Field{"train.beta1", "--beta1", "of adam, adamw and lamb", &C::beta1},
    Field{"train.beta2", "--beta2", "of adam, adamw and lamb", &C::beta2},
    Field{"train.epsilon", "--epsilon", "of adam, adamw, rmsprop, adagrad and lamb", &C::epsilon},
    Field{"train.alpha", "--alpha", "rmsprop: what a running mean of squares keeps", &C::alpha},
    Field{"train.centered", "--centered", "rmsprop: less the square of the gradient's running mean", &C::centered},
    Field{"train.lr_decay", "--lr-decay", "adagrad: the rate is divided by 1 + this times the steps before",
          &C::lr_decay},
    Field{"train.initial_accumulator", "--initial-accumulator", "adagrad: what its sums of squares begin with",
          &C::initial_accumulator},
    Field{"train.trust", "--trust", "lars: share of a layer's norm a step may move it", &C::trust},
    Field{"train.clip", "--clip", "most norm of all gradients together (0: any)", &C::clip},
    Field{"train.autocast", "--autocast", "bf16 for products and convolutions, or none", &C::autocast},
    Field{
        "train.ops", "--ops",
        "operators on the CPU: auto takes for each layer what is measured fastest, auto:avx2 of no newer instructions; "
        "libtorch; or reference, slow",
        &C::ops},
    Field{"train.op_memory", "--op-memory", "workspace one operator may use: 256M; or any", &C::op_memory},
    Field{"train.sync_batch_norm", "--sync-batch-norm", "batch normalization over all workers' samples",
          &C::sync_batch_norm},
    Field{"train.on_nan", "--on-nan", "stop or skip the step when a gradient is not finite", &C::on_nan},
    Field{"train.deterministic", "--deterministic",
          "bit-identical for any workers (1, 2, 4, …), algorithm, transport and plan; "
          "with --micro-batch",
          &C::deterministic},
    Field{"train.seed", "--seed", "of weights, order and dropout", &C::seed},
    Field{"train.target", "--target", "note when the test accuracy, or first --metric, gets there (0: none)",
          &C::target},
    Field{"train.evals_per_epoch", "--evals-per-epoch", "how often an epoch the model is tested", &C::evals_per_epoch},
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
    Field{"out.print_ops", "--print-ops", "at the end, what each layer's operators ran", &C::print_ops},
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
          throw ConfigError(fmt::format("{}: '{}' is neither true nor false", field.flag, clipped(text)));
        }
      },
      field.member);
}

// As it is written on a command line; nothing where it is no value.
std::optional<std::string> json_text(const nlohmann::json& value) {
  if (value.is_structured() || value.is_null()) return std::nullopt;
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void merge_under(Config& config, const nlohmann::json& json, const std::string& prefix, std::string_view where) {
  for (const auto& [name, value] : json.items()) {
    std::string key = prefix.empty() ? name : prefix + "." + name;
    if (value.is_object()) {
      merge_under(config, value, key, where);
      continue;
    }
    const auto text = json_text(value);
    if (!text)
      throw ConfigError(fmt::format("{}: {}: a text, a number, true or false was expected", where, clipped(key)));
    try {
      set(config, key, *text);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", where, error.what()));
    }
  }
}

}  // namespace

std::optional<mesh::MeshShape> told_mesh(const Config& config) {
  if (config.mesh.empty() || config.mesh == "auto") return std::nullopt;
  return mesh::parse_mesh(config.mesh);
}

bool uses_mesh(const Config& config) {
  return !config.mesh.empty() || config.shard != "none" || config.recompute != "none" || config.hybrid != "none";
}

std::int64_t micro_batches_of(const Config& config) {
  if (config.micro_batches > 0) return config.micro_batches;
  const auto told = told_mesh(config);
  const bool stages = told ? told->pipe > 1 : config.mesh == "auto";
  return stages ? mesh::kMicroBatches : 1;
}

void apply_optimizer(Config& config) {
  const auto& kind = find_optimizer(config.optimizer);
  if (config.lr == 0) config.lr = kind.lr;
  config.momentum = momentum_of(config);
}

double momentum_of(const Config& config) {
  return config.momentum == kOwnMomentum ? find_optimizer(config.optimizer).own_momentum : config.momentum;
}

optim::Options optimizer_options(const Config& config, double momentum) {
  return {.weight_decay = config.weight_decay,
          .momentum = momentum,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .alpha = config.alpha,
          .centered = config.centered,
          .lr_decay = config.lr_decay,
          .initial_accumulator = config.initial_accumulator,
          .trust = config.trust};
}

void apply_hybrid(Config& config) {
  const auto& hybrid = mesh::find_hybrid(config.hybrid);
  if (!hybrid.strategy.empty() && config.strategy == Config().strategy) config.strategy = hybrid.strategy;
  if (config.mesh.empty()) config.mesh = hybrid.mesh;
}

std::span<const Field> fields() { return kFields; }

const Field& find_field(std::string_view name) {
  auto matches = [&](const Field& field) { return field.key == name || field.flag.substr(2) == name; };
  auto found = std::ranges::find_if(kFields, matches);
  if (found != kFields.end()) return *found;
  std::vector<std::string_view> names;
  for (const auto& field : kFields) names.insert(names.end(), {field.key, field.flag.substr(2)});
  const auto near = nearest(name, names);
  if (!near) {
    throw ConfigError(
        fmt::format("there is no setting '{}'; trireme train --print-config shows all there are", clipped(name)));
  }
  const auto& meant = find_field(*near);
  throw ConfigError(
      fmt::format("there is no setting '{}'; did you mean {} ({})?", clipped(name), meant.key, meant.flag));
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

}  // namespace trireme::train

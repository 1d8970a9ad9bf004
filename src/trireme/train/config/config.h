// Everything a training run is told, in one table: each field has a name ("train.batch"), a flag (--batch) and a line
// of help. The table drives the command line, --set, configuration files, --print-config and run.json.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "trireme/mesh/mesh_shape.h"
#include "trireme/optim/optimizer.h"

namespace trireme::train {

// The optimizer's own.
inline constexpr double kOwnMomentum = -1;

struct Config {
  // model
  std::string model = "lenet";
  std::map<std::string, std::string> model_args;
  // data
  std::string data = "fashion-mnist";
  std::string data_root, label_column;
  std::int64_t image_size = 0, length = 64;
  double test_fraction = 0.1;
  bool augment = false;
  // train
  std::int64_t batch = 64, epochs = 4, steps = 0, accumulate = 1, micro_batch = 0;
  std::string loss = "auto", metric = "auto";
  std::string optimizer = "sgd", schedule = "one-cycle";
  double lr = 0, momentum = kOwnMomentum, weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, trust = 0.001;
  double alpha = 0.99, lr_decay = 0, initial_accumulator = 0;
  bool nesterov = false, centered = false;
  double warmup = 0;
  std::int64_t reference_batch = 0;
  double clip = 0;
  std::string autocast = "none", on_nan = "stop", ops = "auto", op_memory = "any";
  bool sync_batch_norm = false, deterministic = false;
  std::int64_t seed = 1;
  std::int64_t evals_per_epoch = 1;
  // sync
  std::string strategy = "allreduce", straggle, servers = "colocated";
  std::int64_t replicas = 1;
  double lease = 2;
  std::string compress = "none", compress_rule;
  bool sparse = false;
  // parallel
  std::string mesh, pipeline = "1f1b", split = "auto", tensor_rule = "auto", shard = "none", recompute = "none",
                    hybrid = "none", memory = "auto";
  std::int64_t micro_batches = 0, chunks = 2;
  bool vertical_sync = false;
  // exchange
  std::string bucket_plan = "optimal", algorithm = "auto", transport = "auto", exchange = "auto";
  std::int64_t lanes = 1;
  double timeout = 60;
  // run
  std::int64_t workers = 2, threads = 0;
  std::string launch = "processes", cores = "own", device = "cpu";
  std::string hosts = "none", bandwidth = "unlimited", latency = "0";
  // out
  std::string out;
  std::int64_t keep_last = 2, checkpoint_every = 0, log_every = 50, trace_steps = 20;
  double target = 0;
  bool print_ops = false;

  bool operator==(const Config&) const = default;
};

struct Field {
  std::string_view key;   // "train.batch"
  std::string_view flag;  // "--batch"
  std::string_view help;
  std::variant<std::string Config::*, std::int64_t Config::*, double Config::*, bool Config::*> member;
};
std::span<const Field> fields();
// By key, or by flag without dashes. Throws ConfigError that names a similar one.
const Field& find_field(std::string_view name);

// From text. Throws ConfigError naming the field. Keys "model.args.NAME" set an argument of the model.
void set(Config& config, std::string_view key, std::string_view text);
std::string value_text(const Config& config, const Field& field);

// The whole, nested by the parts of keys.
nlohmann::ordered_json to_json(const Config& config);
// Over what is there. Throws ConfigError naming `where` and the key.
void merge(Config& config, const nlohmann::json& json, std::string_view where);
// A file in JSON or, if its name ends in .toml, TOML. Throws DataError naming file, line and column.
void merge_file(Config& config, const std::string& path);
// TRIREME_BATCH, TRIREME_MODEL and so on, for every flag there is.
void merge_environment(Config& config);

// The mesh that was told; none where there is none, or it is to be chosen.
std::optional<mesh::MeshShape> told_mesh(const Config& config);
// Whether the model is cut, or runs in pieces, on a mesh of workers.
bool uses_mesh(const Config& config);
// Into how many a batch is cut on a mesh: as told, else 8, so that stages of a pipeline have something to do; where
// the mesh that was told has one stage only, a batch stays whole.
std::int64_t micro_batches_of(const Config& config);

// What the optimizer says where it was left to it: its learning rate and momentum.
void apply_optimizer(Config& config);
// The momentum that was asked for, else the optimizer's own.
double momentum_of(const Config& config);
// What was set of the optimizer, with a momentum that may be another than asked for.
optim::Options optimizer_options(const Config& config, double momentum);

// What --hybrid means in terms of the other settings, where they were left as they are.
void apply_hybrid(Config& config);

// What can be told to be wrong before anything is opened: choices, ranges, what does not go together. Throws
// ConfigError.
void check(const Config& config);
// Compute threads of one worker, 0 for as many as there are cores. Throws ConfigError where they are more than this
// host can start.
void check_threads(std::int64_t threads);

}  // namespace trireme::train

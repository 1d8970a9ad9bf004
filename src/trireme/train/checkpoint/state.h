// All that must be kept to go on exactly: weights, optimizer, schedule, and where in the data the run is. Random
// numbers need no keeping: they are a function of the seed and the place in the data.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/collective/run/communicator.h"
#include "trireme/data/single_sample.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/checkpoint/safetensors_header.h"
#include "trireme/train/config/config.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/objective/objective.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

// Where a run is.
struct Place {
  std::int64_t step = 0;      // steps taken
  std::int64_t epoch = 0;     // from 0
  std::int64_t position = 0;  // samples taken in this epoch, by all workers
  double train_seconds = 0;
  std::map<std::string, double> best = {};  // of each metric, by its key
  double target_seconds = -1;               // when the target was reached; not yet: -1
  std::uint64_t bytes_sent = 0;             // by the first worker
};

// Parameters and buffers by name, live. Frozen and shared ones too, each name once.
NamedTensors model_tensors(torch::nn::Module& model);

struct Keepsake {
  NamedTensors tensors;  // "model.…" and "optimizer.…"
  Metadata metadata;
};
inline constexpr std::string_view kOfModel = "model.", kOfOptimizer = "optimizer.";
Keepsake keep(const NamedTensors& model, const NamedTensors& optimizer, const RateSchedule& schedule,
              const Place& place, const Config& config, const Objective& objective, const data::Look& look);
// Those whose names begin with it, without it.
NamedTensors tensors_under(const LoadedCheckpoint& checkpoint, std::string_view prefix);

// Weights alone. Throws DataError naming the file and the first tensor that is missing, too many or of another shape.
void restore_model(torch::nn::Module& model, const LoadedCheckpoint& checkpoint, const std::string& file);
Place restore(torch::nn::Module& model, Optimizer& optimizer, RateSchedule& schedule,
              const LoadedCheckpoint& checkpoint, const std::string& file);
// Throws ConfigError where the checkpoint's run made something else small, or judged the best by another metric.
void check_same_objective(const Objective& objective, const LoadedCheckpoint& checkpoint, const std::string& file);
// Where the run was, and its schedule, alone.
Place restore_place(RateSchedule& schedule, const LoadedCheckpoint& checkpoint, const std::string& file);
// Rank 0's becomes everyone's: a checkpoint need only lie on its disk. Collective.
void share(LoadedCheckpoint& checkpoint, Communicator& world);
// What the checkpoint's run was told.
nlohmann::json config_of(const LoadedCheckpoint& checkpoint, const std::string& file);
// What its data looked like: enough to build the model and to read samples for it.
data::Look look_in(const LoadedCheckpoint& checkpoint, const std::string& file);

}  // namespace trireme::train

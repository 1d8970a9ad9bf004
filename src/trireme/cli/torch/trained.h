// What `trireme train` left behind, ready to be used.
#pragma once
#include <memory>
#include <string>

#include "trireme/data/single_sample.h"
#include "trireme/models/model.h"
#include "trireme/train/config/config.h"
#include "trireme/train/objective/objective.h"

namespace trireme::cli {

struct Trained {
  std::string file;  // the checkpoint
  std::int64_t step = 0;
  train::Config config;        // as the run was told
  data::Look look;             // of the data it learned from
  train::Objective objective;  // as of the run
  std::shared_ptr<models::Model> model;
  torch::Device device = torch::kCPU;
};

struct TrainedOptions {
  std::string from;                 // folder of a run, or a checkpoint
  std::string checkpoint = "best";  // or last
  std::string device;               // cpu, cuda; empty: cuda where the run had it and it is here
  std::int64_t threads = 0;         // 0: every core
  std::string metric;               // as --metric; empty: the run's
};

// The weights of that checkpoint, in evaluation mode. `best` is the last where none was found best yet; a broken one is
// passed over, and a line on standard error says so. Throws ConfigError and DataError.
Trained load_trained(const TrainedOptions& options);

}  // namespace trireme::cli

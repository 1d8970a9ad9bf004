// What a run works on: its data, its model, its device, and what it makes small.
#pragma once
#include <torch/torch.h>

#include <memory>

#include "trireme/data/dataset.h"
#include "trireme/models/model.h"
#include "trireme/operators/settings.h"
#include "trireme/train/config/config.h"
#include "trireme/train/objective/objective.h"

namespace trireme::train {

struct Workload {
  data::Splits data;
  std::shared_ptr<models::Model> model;  // shared: LibTorch's modules are
  torch::Device device = torch::kCPU;
  Objective objective;
};

// Opens the data and builds the model from the seed; the same on every worker. `local_rank` picks the CUDA device.
// Throws ConfigError and DataError: what the user asked for cannot be, or is not there.
Workload prepare(const Config& config, int local_rank = 0);
// The model alone, for the shape of this data.
std::shared_ptr<models::Model> build_model(const Config& config, const data::Shape& shape);
data::Splits open_data(const Config& config);
// What --ops, --op-memory and --deterministic say of its layers.
operators::Settings operators_of(const Config& config);

// The inputs of the first training samples, as many as there are of so many, on the device; and their targets.
torch::Tensor first_samples(const Workload& work, std::int64_t count);
torch::Tensor first_targets(const Workload& work, std::int64_t count);

// Compute threads of one of the workers that were started together: what was asked for, or its share of its host's
// cores; 1 with --deterministic, where the number of threads must not depend on the number of workers.
int compute_threads(const Config& config, int workers_started);
// What a worker does first, in its process or thread: sets its compute threads and, where the workers fill the host's
// cores, keeps to its share of them (--cores own), so that none computes where another's threads are waited for.
void take_place(const Config& config, int worker, int workers_started);
// For LibTorch and its BLAS, of the calling thread and all later ones.
void set_compute_threads(int threads);

// The sums of the metric that is told while training; zeros where none is.
struct Score {
  double sum = 0, of = 0;
};
Score score_of(const Objective& objective, const torch::Tensor& output, const torch::Tensor& target);

std::size_t parameter_count(const torch::nn::Module& model);

}  // namespace trireme::train

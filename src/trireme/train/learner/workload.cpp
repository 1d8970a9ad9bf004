#include "trireme/train/learner/workload.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/base/mutex.h"
#include "trireme/base/text/size.h"
#include "trireme/data/open.h"
#include "trireme/net/emulated_network.h"
#include "trireme/operators/optimize.h"

namespace trireme::train {

data::Splits open_data(const Config& config) {
  return data::open(config.data, {.root = config.data_root,
                                  .image_size = config.image_size,
                                  .test_fraction = config.test_fraction,
                                  .label_column = config.label_column,
                                  .length = config.length,
                                  .augment = config.augment,
                                  .seed = static_cast<std::uint64_t>(config.seed),
                                  .targets = targets_for(config.loss)});
}

std::shared_ptr<models::Model> build_model(const Config& config, const data::Shape& shape) {
  // Weights come from LibTorch's one default generator: workers that are threads take turns.
  static Mutex generator;
  MutexLock lock(generator);
  torch::manual_seed(static_cast<std::uint64_t>(config.seed));
  auto model = models::make_model(config.model, {shape.input, shape.outputs(), shape.text}, config.model_args);
  operators::optimize(*model, operators_of(config));
  return model;
}

operators::Settings operators_of(const Config& config) {
  auto settings = operators::settings_of(config.ops);
  // What is chosen by measurement may differ from machine to machine in the order of its sums.
  if (config.deterministic && settings.operators == operators::Operators::automatic) {
    settings.operators = operators::Operators::libtorch;
  }
  if (config.op_memory != "any") {
    settings.memory = static_cast<std::int64_t>(parse_size(config.op_memory, "--op-memory"));
  }
  return settings;
}

Workload prepare(const Config& config, int local_rank) {
  Workload work;
  if (config.device == "cuda") {
    if (!torch::cuda::is_available()) throw ConfigError("--device cuda: this LibTorch or this machine has no CUDA");
    work.device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank % torch::cuda::device_count()));
  }
  work.data = open_data(config);
  work.objective = make_objective(config.loss, config.metric, work.data.train->shape(), work.data.name);
  work.model = build_model(config, work.data.train->shape());
  work.model->to(work.device);
  return work;
}

namespace {

data::Batch first_batch(const Workload& work, std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(count, work.data.train->size())));
  std::iota(indices.begin(), indices.end(), 0);
  return work.data.train->get(indices);
}

}  // namespace

torch::Tensor first_samples(const Workload& work, std::int64_t count) {
  return first_batch(work, count).input.to(work.device);
}

torch::Tensor first_targets(const Workload& work, std::int64_t count) {
  return first_batch(work, count).target.to(work.device);
}

int compute_threads(const Config& config, int workers_started) {
  if (config.threads > 0) return static_cast<int>(config.threads);
  return config.deterministic ? 1 : std::max(1, usable_cores() / std::max(1, net::workers_beside(workers_started)));
}

void take_place(const Config& config, int worker, int workers_started) {
  const int threads = compute_threads(config, workers_started);
  const bool emulated = net::workers_beside(workers_started) != workers_started;  // hosts have cores of their own
  const bool filled = workers_started * threads == usable_cores();
  if (config.cores == "own" && config.device == "cpu" && filled && !emulated) {
    keep_to_share(worker, workers_started);
  }
  set_compute_threads(threads);
}

void set_compute_threads(int threads) {
  torch::set_num_threads(threads);
  // LibTorch does not tell OpenBLAS.
  if (void* set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(threads);
}

Score score_of(const Objective& objective, const torch::Tensor& output, const torch::Tensor& target) {
  torch::NoGradGuard no_grad;
  std::array<double, 2> sums{};
  if (const auto* metric = objective.while_training()) metric->add(output, target, sums);
  return {sums[0], sums[1]};
}

std::size_t parameter_count(const torch::nn::Module& model) {
  std::size_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace trireme::train

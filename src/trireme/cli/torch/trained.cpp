#include "trireme/cli/torch/trained.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/checkpoint/state.h"
#include "trireme/train/learner/workload.h"

namespace trireme::cli {
namespace {

std::filesystem::path find(const TrainedOptions& options) {
  const std::filesystem::path from = options.from;
  if (options.checkpoint != "best" && options.checkpoint != "last") {
    not_one_of("--checkpoint", options.checkpoint, std::array<std::string_view, 2>{"best", "last"});
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(from, ignored)) return from;
  if (!std::filesystem::is_directory(from, ignored)) {
    throw DataError(fmt::format("{}: no such folder; --from wants what trireme train wrote to (--out)", options.from));
  }
  train::CheckpointSearch search;
  if (options.checkpoint == "best") search = train::best_checkpoint(from);
  if (!search.found) {
    auto skipped = std::move(search.skipped);
    search = train::latest_checkpoint(from);
    for (auto& line : search.skipped) {
      if (std::ranges::find(skipped, line) == skipped.end()) skipped.push_back(line);
    }
    search.skipped = std::move(skipped);
  }
  if (!search.found) {
    throw DataError(fmt::format("{}: no whole checkpoint{}", options.from,
                                search.skipped.empty() ? "" : "; " + search.skipped.front()));
  }
  for (const auto& line : search.skipped) fmt::print(stderr, "trireme: {}\n", line);
  return search.found->path;
}

torch::Device device_for(const TrainedOptions& options, const train::Config& config) {
  if (!options.device.empty() && options.device != "cpu" && options.device != "cuda") {
    not_one_of("--device", options.device, std::array<std::string_view, 2>{"cpu", "cuda"});
  }
  const bool here = torch::cuda::is_available();
  if (options.device == "cuda" && !here) {
    throw ConfigError("--device cuda: this LibTorch or this machine has no CUDA");
  }
  const bool wanted = options.device.empty() ? config.device == "cuda" : options.device == "cuda";
  return wanted && here ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
}

}  // namespace

Trained load_trained(const TrainedOptions& options) {
  Trained trained;
  const auto path = find(options);
  trained.file = path.string();
  const auto loaded = train::load_checkpoint(path);
  trained.step = loaded.step;
  train::merge(trained.config, train::config_of(loaded, trained.file), trained.file);
  trained.look = train::look_in(loaded, trained.file);
  const bool text = trained.look.shape.text;
  if (!options.metric.empty()) {
    trained.config.metric = options.metric;
  } else if (text && trained.config.metric == "auto") {
    trained.config.metric = "accuracy,perplexity";
  }
  if (trained.config.loss == "auto" && trained.look.shape.values > 0) trained.config.loss = "mse";
  trained.objective =
      train::make_objective(trained.config.loss, trained.config.metric, trained.look.shape, trained.look.name);
  trained.device = device_for(options, trained.config);
  train::set_compute_threads(options.threads > 0 ? static_cast<int>(options.threads) : usable_cores());
  trained.model = train::build_model(trained.config, trained.look.shape);
  train::restore_model(*trained.model, loaded, trained.file);
  trained.model->to(trained.device);
  trained.model->eval();
  return trained;
}

}  // namespace trireme::cli

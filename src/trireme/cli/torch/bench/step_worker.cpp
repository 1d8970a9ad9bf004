#include "trireme/cli/torch/bench/step_worker.h"

#include <fmt/format.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <memory>
#include <sstream>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/cli/bench/wire.h"
#include "trireme/grad/autocast.h"
#include "trireme/models/model.h"
#include "trireme/operators/optimize.h"
#include "trireme/train/learner/workload.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::cli {
namespace {

constexpr std::int64_t kVocabulary = 256;

// The data that bench/peers/pytorch_step.py uses too.
models::Shape data_shape(const StepJob& job) {
  if (job.length > 0) return {{job.length}, kVocabulary, true};
  const bool grey = job.model == "lenet" || job.model.starts_with("mlp");
  return {grey ? std::vector<std::int64_t>{1, 28, 28} : std::vector<std::int64_t>{3, 32, 32}, 10, false};
}

class SteppingModel {
 public:
  explicit SteppingModel(const StepJob& job)
      : model_(models::make_model(job.model, data_shape(job))), bf16_(job.dtype != "f32") {
    operators::optimize(*model_, operators::settings_of(job.ops));
    train::NamedTensors parameters;
    for (const auto& item : model_->named_parameters()) parameters.emplace_back(item.key(), item.value());
    train::OptimizerOptions options;
    options.momentum = 0.9;
    optimizer_ = train::make_optimizer("sgd", parameters, options);
    if (job.length > 0) {
      x_ = torch::randint(kVocabulary, {job.batch, job.length}, torch::kInt64);
      y_ = torch::randint(kVocabulary, {job.batch * job.length}, torch::kInt64);
      return;
    }
    auto sizes = data_shape(job).input;
    sizes.insert(sizes.begin(), job.batch);
    x_ = torch::randn(sizes);
    y_ = torch::arange(job.batch).remainder(10);
  }

  void step() {
    torch::Tensor scores;
    {
      const Autocast autocast(torch::kCPU, bf16_);
      scores = model_->forward(x_).to(torch::kFloat32);
    }
    torch::cross_entropy_loss(scores.flatten(0, -2), y_).backward();
    optimizer_->step(1e-4);
    model_->zero_grad(/*set_to_none=*/true);
  }

 private:
  std::shared_ptr<models::Model> model_;
  bool bf16_;
  std::unique_ptr<train::Optimizer> optimizer_;
  torch::Tensor x_, y_;
};

}  // namespace

void serve_steps(const StepJob& job) {
  if (job.dtype != "f32") {
    if (const auto note = avoid_amx(); !note.empty()) fmt::print(stderr, "trireme: {}\n", note);
  }
  train::set_compute_threads(job.threads);
  torch::manual_seed(1);
  SteppingModel model(job);
  auto wire = bench::Wire::connect(job.socket);
  wire.send_line(fmt::format("hello 0 Trireme on LibTorch {}", TORCH_VERSION));
  while (true) {
    constexpr double kPatience = 3600;  // others are measured meanwhile
    std::istringstream words(wire.read_line(Deadline::in_seconds(kPatience)));
    std::string order, mode;
    int warmup = 0, iterations = 0;
    words >> order >> mode >> warmup >> iterations;
    if (order == "quit") {
      wire.send_line("ok");
      return;
    }
    for (int i = 0; i < warmup; ++i) model.step();
    std::vector<float> times;
    for (int i = 0; i < iterations; ++i) {
      const double begin = now_seconds();
      model.step();
      times.push_back(static_cast<float>(1e6 * (now_seconds() - begin)));
    }
    wire.send_line(fmt::format("ok {} 0", iterations));
    wire.send(std::as_bytes(std::span(times)));
  }
}

}  // namespace trireme::cli

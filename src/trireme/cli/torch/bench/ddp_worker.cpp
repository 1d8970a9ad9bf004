#include "trireme/cli/torch/bench/ddp_worker.h"

#include <fmt/format.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <sstream>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/cli/bench/wire.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/models/model.h"
#include "trireme/train/learner/workload.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::cli {
namespace {

// The data that bench/peers/pytorch_ddp.py uses too.
models::Shape shape_for(const std::string& model) {
  bool grey = model == "lenet" || model.starts_with("mlp");
  return {grey ? std::vector<std::int64_t>{1, 28, 28} : std::vector<std::int64_t>{3, 32, 32}, 10, false};
}

class Trainer {
 public:
  Trainer(const DdpJob& job, Communicator& world)
      : world_(world),
        model_(models::make_model(job.model, shape_for(job.model))),
        net_(data_parallel(*model_, world, options_of(job))) {
    train::NamedTensors parameters;
    for (const auto& item : model_->named_parameters()) parameters.emplace_back(item.key(), item.value());
    optimizer_ = train::make_optimizer("sgd", parameters);
    auto sizes = shape_for(job.model).input;
    sizes.insert(sizes.begin(), job.batch);
    x_ = torch::randn(sizes);
    y_ = torch::arange(job.batch).remainder(10);
  }

  void run(std::string_view mode) {
    if (mode == "step") {
      torch::cross_entropy_loss(model_->forward(x_), y_).backward();
    } else {
      auto quiet = net_.no_sync();
      torch::cross_entropy_loss(model_->forward(x_), y_).backward();
      if (mode == "barrier") world_.barrier();
    }
    optimizer_->step(1e-4);
    net_.zero_grad();
  }

 private:
  static DataParallelOptions options_of(const DdpJob& job) {
    DataParallelOptions options;
    options.bucket_plan = job.plan;
    options.threads = job.threads;
    if (job.turn != "auto") options.turn = job.turn == "inline" ? sync::Turn::in_line : sync::Turn::background;
    return options;
  }

  Communicator& world_;
  std::shared_ptr<models::Model> model_;
  DataParallel net_;
  std::unique_ptr<train::Optimizer> optimizer_;
  torch::Tensor x_, y_;
};

}  // namespace

void serve_ddp(const DdpJob& job) {
  train::set_compute_threads(job.threads);
  torch::manual_seed(1);
  auto world = init();
  Trainer trainer(job, world);
  auto wire = bench::Wire::connect(job.socket);
  wire.send_line(fmt::format("hello {} Trireme on LibTorch {}", world.rank(), TORCH_VERSION));
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
    for (int i = 0; i < warmup; ++i) trainer.run(mode);
    world.barrier();
    std::vector<float> times;
    for (int i = 0; i < iterations; ++i) {
      double begin = now_seconds();
      trainer.run(mode);
      times.push_back(static_cast<float>(1e6 * (now_seconds() - begin)));
    }
    wire.send_line(fmt::format("ok {} 0", iterations));
    wire.send(std::as_bytes(std::span(times)));
  }
}

}  // namespace trireme::cli

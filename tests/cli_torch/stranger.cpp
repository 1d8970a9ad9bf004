// A program of a user's own, as tests see one: its module, its data set, its optimizer (each the same as one of
// Trireme's own, written anew), trained by train_main(), or in a loop of its own by synchronize():
//   stranger [train …]
//   stranger loop STRATEGY RANKS STEPS FILE     the weights go to FILE, f32, one parameter after the other
#include <torch/torch.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>

#include "trireme/collective/run/communicator.h"
#include "trireme/data/sampler.h"
#include "trireme/train.h"
#include "trireme/train/synchronize.h"

namespace {

// As `--model mlp --model-arg width=16`.
struct Net : torch::nn::Module {
  torch::nn::Linear one{nullptr}, two{nullptr}, three{nullptr};
  Net(std::int64_t inputs, std::int64_t outputs)
      : one(register_module("one", torch::nn::Linear(inputs, 16))),
        two(register_module("two", torch::nn::Linear(16, 16))),
        three(register_module("three", torch::nn::Linear(16, outputs))) {}
  torch::Tensor forward(const torch::Tensor& x) { return three(torch::relu(two(torch::relu(one(x.flatten(1)))))); }
};

// As synthetic:1x8x8,classes=4,samples=237,test=32,noise=2.
class Samples : public trireme::data::Dataset {
 public:
  explicit Samples(std::shared_ptr<const Dataset> set) : set_(std::move(set)) {}
  std::int64_t size() const override { return set_->size(); }
  const trireme::data::Shape& shape() const override { return set_->shape(); }
  trireme::data::Batch get(std::span<const std::int64_t> indices) const override { return set_->get(indices); }

 private:
  std::shared_ptr<const Dataset> set_;
};

trireme::data::Splits open_samples(std::string_view, const trireme::data::OpenOptions& options) {
  auto all = trireme::data::open("synthetic:1x8x8,classes=4,samples=237,test=32,noise=2", options);
  all.train = std::make_shared<Samples>(all.train);
  all.test = std::make_shared<Samples>(all.test);
  return all;
}

// As `--optimizer sgd`.
class Sgd : public trireme::train::Optimizer {
 public:
  Sgd(trireme::train::NamedTensors parameters, double momentum)
      : parameters_(std::move(parameters)), momentum_(momentum) {
    for (const auto& [name, tensor] : parameters_) velocities_.emplace_back(name + ".velocity", tensor.detach() * 0);
  }
  void step(double lr) override {
    torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      auto& parameter = parameters_[k].second;
      if (!parameter.grad().defined()) continue;
      velocities_[k].second.mul_(momentum_).add_(parameter.grad());
      parameter.sub_(lr * velocities_[k].second);
    }
  }
  trireme::train::NamedTensors state() override { return velocities_; }
  void load(const trireme::train::NamedTensors& state) override {
    for (std::size_t k = 0; k < velocities_.size(); ++k) velocities_[k].second.copy_(state.at(k).second);
  }

 private:
  trireme::train::NamedTensors parameters_, velocities_;
  double momentum_;
};

// As `--loss cross-entropy`.
class OwnLoss : public trireme::train::Loss {
 public:
  torch::Tensor operator()(const torch::Tensor& output, const torch::Tensor& target) const override {
    return -torch::log_softmax(output, 1).gather(1, target.unsqueeze(1)).mean();
  }
};

void loop(const std::string& strategy, int ranks, int steps, const char* file) {
  const auto data = open_samples("", {});
  trireme::run_threads(ranks, [&](trireme::Communicator& world) {
    static std::mutex generator;
    std::shared_ptr<Net> net;
    {
      std::lock_guard lock(generator);
      torch::manual_seed(1);
      net = std::make_shared<Net>(64, 4);
    }
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
    auto sync = trireme::synchronize(net, optimizer, world, {.strategy = strategy, .total_steps = steps});
    trireme::data::ShardedSampler sampler(
        {.size = 237, .batch = 12, .rank = world.rank(), .workers = ranks, .drop_last = true});
    for (int step = 0; step < steps;) {
      const auto share = sampler.next();
      if (!share) continue;  // an epoch ends
      const auto batch = data.train->get(share->indices);
      torch::cross_entropy_loss(net->forward(batch.input), batch.target).backward();
      sync.step();
      ++step;
    }
    sync.finish();
    if (world.rank() != 0) return;
    std::ofstream out(file, std::ios::binary);
    for (const auto& parameter : net->parameters()) {
      const auto values = parameter.detach().contiguous();
      out.write(static_cast<const char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
    }
  });
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 6 && std::strcmp(argv[1], "loop") == 0) {
    torch::set_num_threads(1);
    loop(argv[2], std::atoi(argv[3]), std::atoi(argv[4]), argv[5]);
    return 0;
  }
  return trireme::train_main(
      argc, argv,
      {.models = {{"stranger-net", "two hidden layers of 16", "",
                   [](const trireme::models::Shape& shape, const trireme::models::Arguments&) {
                     std::int64_t inputs = 1;
                     for (const auto extent : shape.input) inputs *= extent;
                     return trireme::model_of(std::make_shared<Net>(inputs, shape.classes));
                   }}},
       .data = {{.name = "stranger-data", .what = "made up", .takes = {}, .open = open_samples}},
       .losses = {{.name = "stranger-loss",
                   .summary = "cross entropy",
                   .settings = {},
                   .make = [](const trireme::Values&) { return std::make_shared<OwnLoss>(); }}},
       .optimizers = {{{.name = "stranger-sgd", .summary = "gradient descent with momentum", .momentum = true},
                       [](const auto& parameters, const auto& options) {
                         return std::make_unique<Sgd>(parameters, options.momentum);
                       }}}});
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}

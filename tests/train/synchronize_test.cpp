// Every strategy and codec in a loop of one's own, beside the same loop on one worker.
#include "trireme/train/synchronize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/sync/compatibility.h"
#include "trireme/sync/strategies.h"

namespace trireme::train {
namespace synchronize_test {

using ::testing::HasSubstr;
using Optimizers = std::map<std::string, std::function<std::unique_ptr<torch::optim::Optimizer>(torch::nn::Module&)>>;

constexpr std::int64_t kSamples = 12;  // of a step, over all ranks
constexpr int kSteps = 12;

constexpr std::int64_t kWide = 4000;  // each server's part of a tensor has more elements than codecs leave alone

struct Net : torch::nn::Module {
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::BatchNorm1d frozen{nullptr};
  explicit Net(std::int64_t width = 8)
      : in(register_module("in", torch::nn::Linear(4, width))),
        out(register_module("out", torch::nn::Linear(width, 3))),
        frozen(register_module("frozen", torch::nn::BatchNorm1d(width))) {
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(7);  // LibTorch's own is for all threads
    torch::NoGradGuard no_grad;
    const double scale = std::sqrt(8.0 / static_cast<double>(width));  // so that the same rates are stable
    for (auto& parameter : parameters()) parameter.copy_(torch::randn(parameter.sizes(), generator) * 0.4 * scale);
    frozen->eval();
  }
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::relu(frozen(in(x)))); }
};

template <typename Kind, typename Options>
auto maker(const Options& options) {
  return [options](torch::nn::Module& model) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<Kind>(model.parameters(), options);
  };
}

const Optimizers& optimizers() {
  using namespace torch::optim;  // NOLINT
  static const Optimizers all{
      {"sgd", maker<SGD>(SGDOptions(0.05))},
      {"momentum", maker<SGD>(SGDOptions(0.02).momentum(0.8).weight_decay(0.01))},
      {"nesterov", maker<SGD>(SGDOptions(0.02).momentum(0.8).nesterov(true))},
      {"adam", maker<Adam>(AdamOptions(0.01).weight_decay(0.01))},
      {"adamw", maker<AdamW>(AdamWOptions(0.01))},
      {"dampened", maker<SGD>(SGDOptions(0.02).momentum(0.8).dampening(0.4))},
      {"amsgrad", maker<Adam>(AdamOptions(0.01).amsgrad(true))},
      {"rmsprop", maker<RMSprop>(RMSpropOptions(0.005))},
      {"rmsprop-all",
       maker<RMSprop>(RMSpropOptions(0.002).alpha(0.9).eps(1e-3).weight_decay(0.01).momentum(0.5).centered(true))},
      {"adagrad", maker<Adagrad>(AdagradOptions(0.05))},
      {"adagrad-all",
       maker<Adagrad>(AdagradOptions(0.05).lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(0.1).eps(1e-6))},
  };
  return all;
}

// Rows [begin, end) of the batch of a step, and what they should give.
std::pair<torch::Tensor, torch::Tensor> batch(int step, std::int64_t begin, std::int64_t end) {
  const auto x = torch::sin(torch::arange(kSamples * 4).reshape({kSamples, 4}) * 0.7 + step);
  const auto y = torch::cat({x.slice(1, 0, 2).prod(1, true), x.slice(1, 1, 3)}, 1);
  return {x.slice(0, begin, end), y.slice(0, begin, end)};
}

double loss_of_all(Net& net) {
  torch::NoGradGuard no_grad;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto [x, y] = batch(step, 0, kSamples);
    sum += torch::mse_loss(net.forward(x), y).item<double>();
  }
  return sum / kSteps;
}

torch::Tensor flat_weights(torch::nn::Module& net) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : net.parameters()) all.push_back(parameter.detach().flatten());
  return torch::cat(all).clone();
}

struct Trained {
  std::vector<torch::Tensor> weights;  // by rank
  double before = 0, after = 0;        // loss
  std::uint64_t bytes = 0;             // sent by rank 0
};
using Watch = std::function<void(Synchronizer&, Net&, int step)>;

Trained train_by(int ranks, const SynchronizeOptions& options, const std::string& optimizer_name, int steps,
                 const Watch& watch = {}, std::int64_t width = 8) {
  Trained trained{std::vector<torch::Tensor>(static_cast<std::size_t>(ranks))};
  run_threads(ranks, [&](Communicator& world) {
    const auto net = std::make_unique<Net>(width);
    if (world.rank() > 0) net->in->bias.set_data(net->in->bias.detach() + 1);  // rank 0's counts
    auto optimizer = optimizers().at(optimizer_name)(*net);
    if (world.rank() == 0) trained.before = loss_of_all(*net);
    auto sync = synchronize(*net, *optimizer, world, options);
    const auto share = kSamples / world.size();
    for (int step = 0; step < steps; ++step) {
      const auto [x, y] = batch(step % kSteps, world.rank() * share, (world.rank() + 1) * share);
      torch::mse_loss(net->forward(x), y).backward();
      sync.step();
      if (watch) watch(sync, *net, step);
    }
    sync.finish();
    trained.weights[static_cast<std::size_t>(world.rank())] = flat_weights(*net);
    if (world.rank() == 0) trained.after = loss_of_all(*net);
    if (world.rank() == 0) trained.bytes = sync.report().bytes_sent;
    EXPECT_EQ(sync.report().steps, steps);
  });
  return trained;
}

torch::Tensor by_one_worker(const std::string& optimizer_name, int steps, double clip = 0) {
  Net net;
  auto optimizer = optimizers().at(optimizer_name)(net);
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = batch(step % kSteps, 0, kSamples);
    optimizer->zero_grad();
    torch::mse_loss(net.forward(x), y).backward();
    if (clip > 0) torch::nn::utils::clip_grad_norm_(net.parameters(), clip);
    optimizer->step();
  }
  return flat_weights(net);
}

double off_by(const torch::Tensor& a, const torch::Tensor& reference) {
  return ((a - reference).abs().max() / reference.abs().max()).item<double>();
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> all;
  for (const auto& kind : sync::strategies()) all.emplace_back(kind.name);
  return all;
}
std::string plain_name(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Synchronized : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Names, Synchronized, ::testing::ValuesIn(strategy_names()),
                         [](const auto& test) { return plain_name(test.param); });

TEST_P(Synchronized, LearnsAndEndsAlikeOnAllRanks) {
  for (const auto* optimizer : {"momentum", "adam"}) {
    for (const int ranks : {1, 2, 3}) {
      const auto trained =
          train_by(ranks, {.strategy = GetParam(), .steps_per_epoch = 12, .total_steps = 120}, optimizer, 120);
      EXPECT_LT(trained.after, 0.6 * trained.before) << optimizer << ", " << ranks << " ranks";
      for (const auto& weights : trained.weights) EXPECT_TRUE(torch::equal(weights, trained.weights[0])) << optimizer;
    }
  }
}

TEST_P(Synchronized, IsOneWorkerWithAllBatchesWhereItsRowSaysSo) {
  const auto& kind = *sync::Choice::parse(GetParam()).kind;
  for (const auto& exact : kind.exact) {
    const auto text = GetParam() + (exact.settings.empty() ? "" : ":" + std::string(exact.settings));
    for (const auto& [name, make] : optimizers()) {
      if (exact.where == sync::StrategyKind::Exact::Where::plain_sgd && name != "sgd") continue;
      for (const double clip : {0.0, 0.2}) {
        if (exact.where == sync::StrategyKind::Exact::Where::plain_sgd && clip > 0) continue;
        const auto trained = train_by(2, {.strategy = text, .clip = clip, .total_steps = kSteps}, name, kSteps);
        EXPECT_LT(off_by(trained.weights[0], by_one_worker(name, kSteps, clip)), 2e-4)
            << text << ", " << name << ", clip " << clip;
      }
    }
  }
}

// All that servers step by: with one worker nothing is late, and every one of them is LibTorch's own to rounding.
TEST(SynchronizedServers, StepAsEveryOptimizerOfLibTorch) {
  for (const auto& strategy : {"ps-bsp", "ps-ssp:s=0", "ps-async", "ps-ssp:s=2"}) {
    for (const auto& [name, make] : optimizers()) {
      Net net;
      const bool paced = strategy != std::string("ps-bsp") && strategy != std::string("ps-ssp:s=0") &&
                         dynamic_cast<torch::optim::SGD*>(make(net).get()) != nullptr && name != "sgd";
      if (paced) continue;  // late gradients go without momentum
      const auto trained = train_by(1, {.strategy = strategy}, name, kSteps);
      EXPECT_LT(off_by(trained.weights[0], by_one_worker(name, kSteps)), 2e-5) << strategy << ", " << name;
    }
  }
}

TEST_P(Synchronized, AskingForTheModelDisturbsNothing) {
  const auto choice = sync::Choice::parse(GetParam());
  if (!choice.traits().repeatable) return;
  const auto quiet = train_by(2, {.strategy = GetParam(), .total_steps = kSteps}, "momentum", kSteps);
  const auto asked = train_by(2, {.strategy = GetParam(), .total_steps = kSteps}, "momentum", kSteps,
                              [](Synchronizer& sync, Net& net, int step) {
                                if (step % 5 == 4)
                                  sync.with_model([&] { EXPECT_TRUE(std::isfinite(loss_of_all(net))); });
                              });
  EXPECT_TRUE(torch::equal(quiet.weights[0], asked.weights[0]));
}

TEST_P(Synchronized, NoStepAtAllLeavesTheFirstModel) {
  const auto trained = train_by(2, {.strategy = GetParam(), .total_steps = kSteps}, "adam", 0);
  EXPECT_TRUE(torch::equal(trained.weights[1], trained.weights[0]));
  EXPECT_LT(off_by(trained.weights[0], flat_weights(*std::make_unique<Net>())), 1e-6);
}

TEST(SynchronizedCodes, EveryCodecThatGoesWithAStrategyLearns) {
  for (const std::string strategy : {"allreduce", "local-sgd", "ps-bsp"}) {
    std::uint64_t plain = 0;  // without a codec, which comes first
    double gained = 0;
    for (const auto& codec : compress::codecs()) {
      sync::Combination chosen;
      chosen.strategy = strategy;
      chosen.compress = codec.name;
      if (sync::refused(chosen)) continue;
      const SynchronizeOptions options{
          .strategy = strategy, .compress = std::string(codec.name), .steps_per_epoch = 12};
      const auto trained = train_by(2, options, "momentum", 100, {}, kWide);
      if (codec.name == "none") plain = trained.bytes;
      if (codec.error != compress::CodecKind::Error::no_such) {
        EXPECT_LT(trained.bytes, plain) << strategy << ", " << codec.name;
      }
      if (codec.name == "none") gained = trained.before - trained.after;
      EXPECT_GT(gained, 0.03) << strategy;
      EXPECT_GT(trained.before - trained.after, 0.8 * gained) << strategy << ", " << codec.name;
      EXPECT_TRUE(torch::equal(trained.weights[0], trained.weights[1])) << strategy << ", " << codec.name;
    }
  }
}

TEST(SynchronizedLoop, BackwardsWithoutSyncAddUp) {
  for (const std::string strategy : {"allreduce", "local-sgd:H=1", "ps-bsp"}) {
    torch::Tensor weights;
    run_threads(2, [&](Communicator& world) {
      Net net;
      auto optimizer = optimizers().at("sgd")(net);
      auto sync = synchronize(net, *optimizer, world, {.strategy = strategy});
      for (int step = 0; step < kSteps; ++step) {
        for (int half = 0; half < 2; ++half) {
          std::optional<Synchronizer::NoSync> quiet;
          if (half == 0) quiet.emplace(sync.no_sync());
          const auto first = world.rank() * 6 + half * 3;
          const auto [x, y] = batch(step, first, first + 3);
          (torch::mse_loss(net.forward(x), y) / 2).backward();
        }
        sync.step();
      }
      sync.finish();
      if (world.rank() == 0) weights = flat_weights(net);
    });
    EXPECT_LT(off_by(weights, by_one_worker("sgd", kSteps)), 2e-5) << strategy;
  }
}

TEST(SynchronizedLoop, TwoModelsTrainSideBySide) {
  run_threads(2, [&](Communicator& world) {
    Net one, other;
    auto first = optimizers().at("sgd")(one);
    auto second = optimizers().at("adam")(other);
    auto sync = synchronize(one, *first, world, {.strategy = "allreduce"});
    auto also = synchronize(other, *second, world, {.strategy = "ps-bsp"});
    for (int step = 0; step < kSteps; ++step) {
      const auto [x, y] = batch(step, world.rank() * 6, world.rank() * 6 + 6);
      torch::mse_loss(one.forward(x), y).backward();
      torch::mse_loss(other.forward(x), y).backward();
      sync.step();
      also.step();
    }
    also.finish();
    sync.finish();
    EXPECT_LT(off_by(flat_weights(one), by_one_worker("sgd", kSteps)), 2e-5);
    EXPECT_LT(off_by(flat_weights(other), by_one_worker("adam", kSteps)), 2e-4);
  });
}

TEST(SynchronizedLoop, WhatItBorrowedItGivesBack) {
  run_threads(2, [&](Communicator& world) {
    Net net;
    auto optimizer = optimizers().at("momentum")(net);
    auto& options = static_cast<torch::optim::SGDOptions&>(optimizer->param_groups()[0].options());
    {
      auto sync = synchronize(net, *optimizer, world, {.strategy = "stale-allreduce"});
      const auto [x, y] = batch(0, 0, 6);
      torch::mse_loss(net.forward(x), y).backward();
      sync.step();
      sync.finish();
      EXPECT_THROW(sync.step(), ConfigError);
    }
    EXPECT_EQ(options.momentum(), 0.8);
    EXPECT_NEAR(options.lr(), 0.02, 1e-12);
    EXPECT_TRUE(std::isfinite(loss_of_all(net)));  // its weights lie in memory of their own
    // Dropped without an end: the model is still there.
    { auto sync = synchronize(net, *optimizer, world, {.strategy = "local-sgd"}); }
    EXPECT_TRUE(std::isfinite(loss_of_all(net)));
  });
}

TEST(SynchronizedLoop, GradientsThatAreNotFiniteAreNamedOrLeftOut) {
  for (const auto& name : {"allreduce", "local-sgd", "ps-bsp", "stale-allreduce"}) {
    for (const bool skip : {false, true}) {
      run_threads(1, [&](Communicator& world) {
        Net net;
        auto optimizer = optimizers().at("sgd")(net);
        auto sync = synchronize(net, *optimizer, world, {.strategy = name, .skip_bad = skip});
        auto [x, y] = batch(0, 0, 6);
        (torch::mse_loss(net.forward(x), y) * std::numeric_limits<float>::infinity()).backward();
        if (!skip) {
          EXPECT_THAT([&] { sync.step(); }, ::testing::ThrowsMessage<Error>(HasSubstr("is not finite"))) << name;
          return;
        }
        sync.step();
        sync.finish();
        EXPECT_TRUE(torch::isfinite(flat_weights(net)).all().item<bool>()) << name;
      });
    }
  }
}

TEST(SynchronizedLoop, WhatDoesNotGoTogetherIsRefused) {
  run_threads(1, [&](Communicator& world) {
    Net net;
    auto refuses = [&](torch::optim::Optimizer& optimizer, const SynchronizeOptions& options, const char* why) {
      EXPECT_THAT([&] { synchronize(net, optimizer, world, options); },
                  ::testing::ThrowsMessage<ConfigError>(HasSubstr(why)));
    };
    auto sgd = optimizers().at("sgd")(net);
    auto rmsprop = optimizers().at("rmsprop")(net);
    torch::optim::LBFGS lbfgs(net.parameters());
    refuses(*sgd, {.strategy = "sma:learners=2"}, "trains 2 models on each rank");
    refuses(*sgd, {.strategy = "alreduce"}, "strategy");
    refuses(*sgd, {.strategy = "gossip-dpsgd", .compress = "int8"}, "mixes models");
    refuses(*sgd, {.compress = "int8", .compress_rule = "nothing*=none"}, "nothing*");
    torch::optim::SGD apart({net.in->parameters(), net.out->parameters()}, torch::optim::SGDOptions(0.1));
    apart.param_groups()[1].options().set_lr(0.2);
    refuses(apart, {.strategy = "ps-async"}, "and those of its groups differ");
    struct Own : torch::optim::Optimizer {
      using torch::optim::Optimizer::Optimizer;
      torch::Tensor step(LossClosure) override { return {}; }
    };
    Own own({torch::optim::OptimizerParamGroup(net.parameters())}, std::make_unique<torch::optim::SGDOptions>(0.1));
    refuses(own, {.strategy = "ps-async"}, "not by this optimizer");
    refuses(*rmsprop, {.compress = "dgc"}, "momentum");
    refuses(lbfgs, {}, "LBFGS");
    refuses(*sgd, {.strategy = "post-local-sgd"}, "total_steps");
    Net wide(kWide);
    auto momentum = optimizers().at("momentum")(wide);
    EXPECT_THAT([&] { synchronize(wide, *momentum, world, {.compress = "dgc"}); },
                ::testing::ThrowsMessage<ConfigError>(HasSubstr("steps_per_epoch")));
  });
}

}  // namespace synchronize_test
}  // namespace trireme::train

// Pipelines against one worker that does the same micro-batches, and PipeDream against its delayed semantics written
// down sequentially.
#include "trireme/parallel/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/mesh/schedule.h"
#include "trireme/nn/dropout.h"
#include "trireme/parallel/pipeline/stage_parameters.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using torch::Tensor;
using torch::nn::Linear;

struct Net : torch::nn::Module {
  nn::Chain chain;
};

// Linear layers with a skip connection over three of them, normalization, layers in place, the first weight tied to
// the last if asked for.
std::shared_ptr<Net> make_net(bool tied = false, bool normalizes = true) {
  static std::mutex generator;  // one for all threads
  std::lock_guard lock(generator);
  torch::manual_seed(5);
  auto net = std::make_shared<Net>();
  std::vector<std::shared_ptr<torch::nn::LinearImpl>> layers;
  for (int k = 0; k < 8; ++k) layers.push_back(net->register_module("fc" + std::to_string(k), Linear(6, 6)));
  auto norm = net->register_module("norm", torch::nn::BatchNorm1d(6));
  for (int k = 0; k < 8; ++k) {
    auto layer = layers[k];
    nn::Piece piece{"fc" + std::to_string(k), {layer}, {}};
    if (k == 2 && normalizes) piece.modules.push_back(norm);
    if (k == 7 && tied) piece.modules = {layers[0]};
    piece.forward = [=](nn::Values values) {
      auto x = values[0];
      if (k == 7 && tied) {
        values[0] = torch::matmul(x, layers[0]->weight);
        return values;
      }
      values[0] = layer->forward(x).tanh_();
      if (k == 2 && normalizes) values[0] = norm->forward(values[0]);
      if (k == 1) values.push_back(x);  // the skip connection
      if (k == 4) {
        values[0] = values[0] + values[1];
        values.pop_back();
      }
      return values;
    };
    net->chain.push_back(piece);
  }
  net->to(torch::kFloat64);
  return net;
}

Tensor input_of(int step, int samples) {
  return torch::arange(samples * 6, torch::kFloat64).reshape({samples, 6}).add(step * 7).sin();
}
Tensor target_of(int step, int samples) { return input_of(step + 100, samples).cos(); }

Tensor loss_of(const Tensor& output, const Tensor& target) { return (output - target).square().sum(); }

void sgd(torch::nn::Module& module, double lr = 0.01) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), lr);
    parameter.mutable_grad() = Tensor();
  }
}

std::map<std::string, Tensor> tensors_of(torch::nn::Module& module) {
  std::map<std::string, Tensor> found;
  for (auto& item : module.named_parameters()) found[item.key()] = item.value().detach().clone();
  for (auto& item : module.named_buffers()) found[item.key()] = item.value().clone();
  return found;
}

// One worker: `steps` steps, each batch in as many parts as there are micro-batches.
std::map<std::string, Tensor> alone(bool tied, bool normalizes, int steps, int samples, int micro_batches) {
  auto net = make_net(tied, normalizes);
  for (int step = 0; step < steps; ++step) {
    auto input = input_of(step, samples), target = target_of(step, samples);
    const int count = std::min(samples, micro_batches);
    for (int m = 0; m < count; ++m) {
      const int from = samples * m / count, rows = samples * (m + 1) / count - from;
      loss_of(nn::run(net->chain, input.narrow(0, from, rows)), target.narrow(0, from, rows)).backward();
    }
    sgd(*net);
  }
  return tensors_of(*net);
}

void expect_equal(torch::nn::Module& part, const std::map<std::string, Tensor>& whole) {
  for (auto& [name, tensor] : tensors_of(part)) {
    EXPECT_TRUE(torch::allclose(tensor, whole.at(name), 1e-10, 1e-12)) << name;
  }
}

class Schedules : public testing::TestWithParam<std::string> {};

TEST_P(Schedules, EqualOneWorker) {
  for (auto [stages, micro_batches, samples] : {std::tuple{1, 3, 7}, {2, 4, 8}, {2, 3, 7}, {3, 8, 5}, {4, 4, 9}}) {
    for (bool tied : {false, true}) {
      for (std::size_t recompute : {0, 2}) {
        SCOPED_TRACE(testing::Message() << stages << ' ' << micro_batches << ' ' << samples << ' ' << tied);
        const bool normalizes = samples >= 2 * micro_batches;  // it needs two samples
        const auto whole = alone(tied, normalizes, 3, samples, micro_batches);
        run_threads(
            stages, [&, stages = stages, micro_batches = micro_batches, samples = samples](Communicator& world) {
              auto net = make_net(tied, normalizes);
              Mesh mesh(world, {.pipe = stages});
              Pipeline pipe(*net, net->chain, mesh,
                            {.schedule = GetParam(), .micro_batches = micro_batches, .recompute = recompute});
              for (int step = 0; step < 3; ++step) {
                pipe.step({.input = input_of(step, samples), .target = target_of(step, samples), .loss = loss_of});
                sgd(pipe.part());
              }
              expect_equal(pipe.part(), whole);
            });
      }
    }
  }
}

TEST_P(Schedules, GoTogetherWithReplicas) {
  const auto whole = alone(false, true, 2, 16, 8);  // as many micro-batches: normalization sees the same
  run_threads(4, [&](Communicator& world) {
    auto net = make_net();
    Mesh mesh(world, {.data = 2, .pipe = 2});
    Pipeline pipe(*net, net->chain, mesh, {.schedule = GetParam(), .micro_batches = 4});
    auto replicas = data_parallel(pipe.part(), mesh.data(), {.op = Op::sum});
    for (int step = 0; step < 2; ++step) {
      const int from = 8 * mesh.place().data;
      pipe.step({.input = input_of(step, 16).narrow(0, from, 8),
                 .target = target_of(step, 16).narrow(0, from, 8),
                 .loss = loss_of,
                 .replicas = &replicas});
      sgd(pipe.part());
    }
    for (auto& item : pipe.part().named_parameters()) {
      EXPECT_TRUE(torch::allclose(item.value(), whole.at(item.key()), 1e-10, 1e-12)) << item.key();
    }
  });
}

std::vector<std::string> synchronous_kinds() {
  std::vector<std::string> names;
  for (const auto& kind : pipelines::kinds()) {
    if (kind.synchronous) names.emplace_back(kind.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, Schedules, testing::ValuesIn(synchronous_kinds()), [](const auto& which) {
  std::string name = which.param;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

// PipeDream, one micro-batch at a time: stage s computes micro-batch i with its weights after i − (stages − 1 − s)
// updates, or, with vertical sync, all with those after i − (stages − 1); backward uses the same.
std::map<std::string, Tensor> delayed(int stages, int total, bool vertical, const parallel::Starts& starts) {
  auto net = make_net();
  std::vector<std::vector<std::vector<Tensor>>> history(stages);  // by stage and version
  std::vector<std::vector<Tensor>> mine(stages);
  for (int s = 0; s < stages; ++s) {
    const auto end = parallel::end_of_part(starts, s, net->chain.size());
    for (auto& [name, tensor] : nn::parameters_of(*net, net->chain, starts[s], end)) mine[s].push_back(tensor);
    history[s].emplace_back();
    for (auto& tensor : mine[s]) history[s][0].push_back(tensor.detach().clone());
  }
  for (int i = 0; i < total; ++i) {
    for (int s = 0; s < stages; ++s) {
      const int version = std::max(0, i - (vertical ? stages - 1 : stages - 1 - s));
      for (std::size_t k = 0; k < mine[s].size(); ++k) mine[s][k].set_data(history[s][version][k].clone());
    }
    loss_of(nn::run(net->chain, input_of(i, 3)), target_of(i, 3)).backward();
    for (int s = 0; s < stages; ++s) {
      history[s].emplace_back();
      for (std::size_t k = 0; k < mine[s].size(); ++k) {
        history[s].back().push_back(history[s][i][k] - 0.01 * mine[s][k].grad());
        mine[s][k].mutable_grad() = Tensor();
      }
    }
  }
  for (int s = 0; s < stages; ++s) {
    for (std::size_t k = 0; k < mine[s].size(); ++k) mine[s][k].set_data(history[s][total][k]);
  }
  return tensors_of(*net);
}

TEST(PipeDream, EqualsItsDelayedSemantics) {
  for (int stages : {1, 2, 4}) {
    for (bool vertical : {false, true}) {
      SCOPED_TRACE(testing::Message() << stages << ' ' << vertical);
      parallel::Starts starts;
      for (int s = 0; s < stages; ++s) starts.push_back(static_cast<std::size_t>(8 * s / stages));
      const auto whole = delayed(stages, 10, vertical, starts);
      run_threads(stages, [&](Communicator& world) {
        auto net = make_net();
        Mesh mesh(world, {.pipe = stages});
        Pipeline pipe(*net, net->chain, mesh,
                      {.schedule = "pipedream", .micro_batches = 5, .starts = starts, .vertical_sync = vertical});
        Pipeline::Batch batch{.loss = loss_of, .update = [&] { sgd(pipe.part()); }};
        for (int step = 0; step < 2; ++step) {
          std::vector<Tensor> inputs, targets;
          for (int k = 0; k < 5; ++k) {
            inputs.push_back(input_of(5 * step + k, 3));
            targets.push_back(target_of(5 * step + k, 3));
          }
          batch.input = torch::cat(inputs);
          batch.target = torch::cat(targets);
          pipe.step(batch);
        }
        pipe.drain(batch);
        // Normalization's running statistics see micro-batches in the same order.
        expect_equal(pipe.part(), whole);
      });
    }
  }
}

TEST(PipeDream, ABatchThatLacksItsUpdateOrLossIsRefused) {
  auto message = [](const PipelineOptions& options, Pipeline::Batch batch) -> std::string {
    try {
      run_threads(1, [&](Communicator& world) {
        auto net = make_net();
        Mesh mesh(world, {.pipe = 1});
        Pipeline pipe(*net, net->chain, mesh, options);
        batch.input = input_of(0, 3);
        batch.target = target_of(0, 3);
        pipe.step(batch);
      });
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({.schedule = "pipedream"}, {.loss = loss_of}), HasSubstr("`update`"));
  EXPECT_THAT(message({.schedule = "gpipe"}, {}), HasSubstr("`loss`"));
}

TEST(Pipelines, EvaluateAndSayWhatTheyHold) {
  auto whole = make_net();
  whole->eval();
  const auto expected = nn::run(whole->chain, input_of(0, 4));
  run_threads(2, [&](Communicator& world) {
    auto net = make_net();
    Mesh mesh(world, {.pipe = 2});
    Pipeline pipe(*net, net->chain, mesh, {.schedule = "interleaved", .micro_batches = 2});
    net->eval();
    auto output = pipe.evaluate(input_of(0, 4));
    EXPECT_EQ(output.defined(), pipe.last());
    if (pipe.last()) {
      EXPECT_TRUE(torch::allclose(output, expected));
    }
    EXPECT_EQ(pipe.part().named_parameters().size(), 2u * 4u + (pipe.last() ? 2u : 0u));
    std::int64_t elsewhere = 0;
    for (auto& parameter : net->parameters()) elsewhere += parameter.numel() == 0;
    EXPECT_GT(elsewhere, 0);  // what others hold takes no memory
  });
}

TEST(Pipelines, AreMadeOfASequentialInALine) {
  run_threads(2, [&](Communicator& world) {
    torch::nn::Sequential model(Linear(6, 6), torch::nn::Tanh(), Linear(6, 6));
    model->to(torch::kFloat64);
    Mesh mesh(world, {.pipe = 2});
    auto net = trireme::pipeline(model, mesh, {.micro_batches = 2});
    net.step({.input = input_of(0, 4), .target = target_of(0, 4), .loss = loss_of});
    for (auto& parameter : net.part().parameters()) EXPECT_TRUE(parameter.grad().defined());
  });
}

TEST(Pipelines, NameTheStageThatIsMissing) {
  Options options;
  options.timeout_s = 1.5;
  std::atomic<bool> noticed = false;
  try {
    run_threads(
        2,
        [&](Communicator& world) {
          auto net = make_net();
          Mesh mesh(world, {.pipe = 2});
          Pipeline pipe(*net, net->chain, mesh, {.micro_batches = 2});
          const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (pipe.last() && !noticed && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
          try {
            pipe.step({.input = input_of(0, 4), .target = target_of(0, 4), .loss = loss_of});
          } catch (const Error&) {
            noticed = true;
            throw;
          }
        },
        options);
    FAIL() << "nobody noticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stage 0 waited for the gradients (backward) of micro-batch 0 from stage 1"));
  }
}

TEST(Pipelines, RefuseWhatCannotBe) {
  auto message = [](int stages, const PipelineOptions& options) -> std::string {
    try {
      run_threads(stages, [&](Communicator& world) {
        auto net = make_net(true);
        Mesh mesh(world, {.pipe = stages});
        Pipeline pipe(*net, net->chain, mesh, options);
      });
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message(3, {.schedule = "interleaved", .chunks = 3}), HasSubstr("9 parts of a model of 8 pieces"));
  EXPECT_THAT(message(2, {.schedule = "pipedream"}), HasSubstr("share a weight"));
  EXPECT_THAT(message(2, {.schedule = "gpip"}), HasSubstr("gpipe"));
  EXPECT_THAT(message(2, {.starts = {0, 9}}), HasSubstr("begin at 2 pieces in order"));
  auto net = make_net();
  EXPECT_EQ(parallel::named_starts(net->chain, "fc3,fc5", 3), (parallel::Starts{0, 3, 5}));
  EXPECT_THROW(parallel::named_starts(net->chain, "fc5,fc3", 3), ConfigError);
  EXPECT_THROW(parallel::named_starts(net->chain, "fc9", 2), ConfigError);
}

}  // namespace
}  // namespace trireme

// Stages of a pipeline, each sharded over its replicas, against one worker: every synchronous schedule, weights that
// two stages share.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "trireme/mesh/schedule.h"
#include "trireme/parallel/pipeline/pipeline.h"
#include "trireme/parallel/shard/shard.h"

namespace trireme::parallel::sharded_pipeline_tests {
namespace {

using torch::Tensor;
using torch::nn::Linear;

// Six layers of an odd width; the last uses the first one's weight.
struct TiedStages : torch::nn::Module {
  TiedStages() {
    static std::mutex generator;  // one for all threads
    std::lock_guard lock(generator);
    torch::manual_seed(5);
    for (int k = 0; k < 6; ++k) {
      Linear layer(7, 7);
      register_module("fc" + std::to_string(k), layer);
      layer->to(torch::kFloat64);
      chain.push_back({"fc" + std::to_string(k), {layer.ptr()}, [layer](nn::Values values) mutable {
                         values[0] = layer(values[0]).tanh();
                         return values;
                       }});
      layers.push_back(layer);
    }
    chain.push_back({"out",
                     {},
                     [w = layers[0]->weight](nn::Values values) {
                       values[0] = values[0].matmul(w);
                       return values;
                     },
                     {layers[0]->weight}});
  }
  std::vector<Linear> layers;
  nn::Chain chain;
};

constexpr int kStageSamples = 12, kStageSteps = 4;

Tensor features_at(int step) {
  return torch::arange(kStageSamples * 7, torch::kFloat64).reshape({-1, 7}).add(step * 7).sin();
}
Tensor targets_at(int step) { return features_at(step + 100).cos(); }
Tensor squared_loss(const Tensor& output, const Tensor& target) { return (output - target).square().sum(); }

std::map<std::string, Tensor> alone_with_adam() {
  TiedStages net;
  torch::optim::Adam optimizer(net.parameters(), 0.01);
  for (int step = 0; step < kStageSteps; ++step) {
    optimizer.zero_grad();
    squared_loss(nn::run(net.chain, features_at(step)), targets_at(step)).backward();
    optimizer.step();
  }
  std::map<std::string, Tensor> found;
  for (auto& item : net.named_parameters()) found[item.key()] = item.value().detach();
  return found;
}

void expect_equals_one_worker(const std::string& schedule, ShardKind kind, sync::Turn turn) {
  static const auto oracle = alone_with_adam();
  run_threads(4, [&](Communicator& world) {
    TiedStages net;
    Mesh mesh(world, {.data = 2, .pipe = 2});
    Pipeline pipe(net, net.chain, mesh, {.schedule = schedule, .micro_batches = 3, .segment = 1}, features_at(0));
    Sharded sharded(units_of(pipe.stages()), mesh.data(), {.what = kind, .turn = turn, .apart = {"fc0.weight"}});
    sharded.watch(pipe.stages());
    std::vector<Tensor> pieces;
    for (const auto& [name, piece] : sharded.shards()) pieces.push_back(piece);
    torch::optim::Adam optimizer(pieces, 0.01);
    auto mine = [&](const Tensor& all) { return all.chunk(2)[mesh.place().data]; };
    for (int step = 0; step < kStageSteps; ++step) {
      pipe.step({.input = mine(features_at(step)),
                 .target = mine(targets_at(step)),
                 .loss = squared_loss,
                 .sums_tied = false});
      sharded.finish();
      sharded.sum_tied(mesh.pipe(), {"fc0.weight"});
      optimizer.step();
      sharded.gather_weights();
      pipe.evaluate(features_at(0));
    }
    for (const auto& [name, tensor] : sharded.whole_weights()) {
      EXPECT_TRUE(torch::allclose(tensor, oracle.at(name), 1e-9, 1e-10)) << schedule << ' ' << name;
    }
  });
}

TEST(ShardedPipeline, EqualsOneWorker) {
  torch::set_num_threads(1);
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero-bubble"}) {
    for (ShardKind kind : {ShardKind::optimizer, ShardKind::gradients, ShardKind::parameters}) {
      expect_equals_one_worker(schedule, kind, sync::Turn::in_line);
    }
  }
  expect_equals_one_worker("1f1b", ShardKind::parameters, sync::Turn::background);
}

}  // namespace
}  // namespace trireme::parallel::sharded_pipeline_tests

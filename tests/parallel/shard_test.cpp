// Sharded training against one worker with the whole batch: weights after 20 steps, whatever is sharded over however
// many workers. LibTorch is not built for TSan, so races are looked for by running both ways of taking turns: a shard
// or a gradient touched while it is under way shows as other weights.
#include "trireme/parallel/shard/shard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "trireme/base/error.h"
#include "trireme/parallel/shard/sharded_net.h"
#include "trireme/parallel/shard/use_order.h"

namespace trireme::parallel::shard_tests {
namespace {

using torch::nn::Linear;
using Weights = std::map<std::string, torch::Tensor>;

constexpr ShardKind kKinds[] = {ShardKind::optimizer, ShardKind::gradients, ShardKind::parameters};

// A weight that two pieces share, one that is frozen, one that nothing uses; no size divides by 2, 3 or 4.
struct OddNet : torch::nn::Module {
  explicit OddNet(int seed) {
    static std::mutex generator;  // one for all threads
    std::lock_guard lock(generator);
    torch::manual_seed(seed);
    in = register_module("in", Linear(6, 7));
    middle = register_module("middle", Linear(7, 9));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({9})));
    back = register_module("back", Linear(9, 7));
    spare = register_parameter("spare", torch::randn({5}));
    to(torch::kFloat64);
    middle->bias.set_requires_grad(false);
  }
  nn::Chain chain() {
    auto of = [](auto f) { return [f](nn::Values v) mutable { return v[0] = f(v[0]), v; }; };
    return {{"in", {in.ptr()}, of([m = in](torch::Tensor x) mutable { return m(x).tanh(); }), {spare}},
            {"middle", {middle.ptr()}, of([m = middle](torch::Tensor x) mutable { return m(x); })},
            {"norm", {norm.ptr()}, of([m = norm](torch::Tensor x) mutable { return m(x).relu(); })},
            {"back", {back.ptr()}, of([m = back](torch::Tensor x) mutable { return m(x).tanh(); })},
            {"out", {}, of([w = in->weight](torch::Tensor x) { return x.matmul(w); }), {in->weight}}};
  }
  Linear in{nullptr}, middle{nullptr}, back{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::Tensor spare;
};

constexpr int kOddSamples = 13, kOddSteps = 20;

torch::Tensor samples(int step) {
  return torch::arange(kOddSamples * 6, torch::kFloat64).mul(0.7).add(step).sin().reshape({kOddSamples, 6});
}
torch::Tensor targets() { return torch::arange(kOddSamples).remainder(6); }
torch::Tensor sum_of_losses(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::cross_entropy_loss(output, target, {}, at::Reduction::Sum);
}

// SGD with momentum for some parameters, Adam for the others: both in one training.
struct Optimizers {
  explicit Optimizers(const nn::Named& named) {
    using namespace torch::optim;
    std::vector<torch::Tensor> some, others;
    for (const auto& [name, tensor] : named)
      (name.starts_with("in") || name == "norm.bias" ? some : others).push_back(tensor);
    if (!some.empty()) sgd = std::make_unique<SGD>(some, SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
    if (!others.empty()) adam = std::make_unique<Adam>(others, AdamOptions(0.01).weight_decay(0.01));
  }
  void step() {
    if (sgd) sgd->step();
    if (adam) adam->step();
  }
  std::unique_ptr<torch::optim::SGD> sgd;
  std::unique_ptr<torch::optim::Adam> adam;
};

Weights weights_of(const nn::Named& named) {
  Weights weights;
  for (const auto& [name, tensor] : named) weights[name] = tensor.detach().clone();
  return weights;
}

void expect_close(const Weights& a, const Weights& b, double tolerance = 1e-9) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    ASSERT_EQ(tensor.sizes(), b.at(name).sizes()) << name;
    EXPECT_LT((tensor - b.at(name)).abs().max().item<double>(), tolerance) << name;
  }
}

struct OneWorker {
  Weights weights;
  double norm = 0;  // of the last gradients
};
OneWorker one_worker(int steps = kOddSteps) {
  OddNet net(1);
  const auto chain = net.chain();
  nn::Named all, learning;
  for (auto& item : net.named_parameters()) {
    all.emplace_back(item.key(), item.value());
    if (item.value().requires_grad()) learning.push_back(all.back());
  }
  Optimizers with(learning);
  OneWorker found;
  for (int s = 0; s < steps; ++s) {
    net.zero_grad();
    (sum_of_losses(nn::run(chain, samples(s)), targets()) / kOddSamples).backward();
    double squares = 0;
    for (auto& [name, parameter] : learning) {
      if (parameter.grad().defined()) squares += parameter.grad().square().sum().item<double>();
    }
    found.norm = std::sqrt(squares);
    with.step();
  }
  found.weights = weights_of(all);
  return found;
}

// This worker's samples.
torch::Tensor mine(const Communicator& comm, const torch::Tensor& all) {
  return all.tensor_split(comm.size())[comm.rank()];
}

// One step's forward and backward of all micro-batches.
void run_step(Stage& stage, const torch::Tensor& input, const torch::Tensor& target, int micro_batches,
              bool halves = false) {
  const auto inputs = input.tensor_split(micro_batches), wanted = target.tensor_split(micro_batches);
  std::vector<torch::Tensor> gradients;
  for (int m = 0; m < micro_batches; ++m) {
    auto output = stage.forward(m, {inputs[m]}).at(0).requires_grad_();
    (sum_of_losses(output, wanted[m]) / kOddSamples).backward();
    gradients.push_back(output.grad());
  }
  for (int m = 0; m < micro_batches; ++m) {
    if (!halves) stage.backward(m, {gradients[m]}, m + 1 == micro_batches);
    if (halves) stage.backward_inputs(m, {gradients[m]});
  }
  for (int m = 0; halves && m < micro_batches; ++m) stage.backward_weights(m, m + 1 == micro_batches);
}

struct Case {
  ShardKind kind;
  int ranks, micro_batches;
  bool recompute, halves = false, accumulate_whole = false;
  std::size_t segment = 1;
};

void expect_equals_one_worker(const Case& c, sync::Turn turn) {
  SCOPED_TRACE(testing::Message() << name(c.kind) << ", " << c.ranks << " workers, " << c.micro_batches
                                  << " micro-batches, recompute " << c.recompute << ", halves " << c.halves
                                  << ", segment " << c.segment);
  static const auto oracle = one_worker();
  run_threads(c.ranks, [&](Communicator& comm) {
    OddNet net(1 + comm.rank());
    Stage stage(net, net.chain(), 0, 5, {.segment = c.segment, .recompute = c.recompute, .input_gradients = false});
    Sharded sharded(units_of(stage), comm, {.what = c.kind, .accumulate_whole = c.accumulate_whole, .turn = turn});
    stage.set_watch(&sharded);
    Optimizers with(sharded.shards());
    for (int s = 0; s < kOddSteps; ++s) {
      run_step(stage, mine(comm, samples(s)), mine(comm, targets()), c.micro_batches, c.halves);
      sharded.finish();
      if (s + 1 == kOddSteps) {
        EXPECT_NEAR(sharded.grad_norm(), oracle.norm, 1e-9);
      }
      with.step();
      sharded.gather_weights();
      if (s == 7) stage.evaluate({samples(0)});
      sharded.zero_grad();
    }
    expect_close(weights_of(sharded.whole_weights()), oracle.weights);
    if (c.kind == ShardKind::parameters) return;
    nn::Named whole;
    for (auto& item : net.named_parameters()) whole.emplace_back(item.key(), item.value());
    expect_close(weights_of(whole), oracle.weights);
  });
}

TEST(Shard, EqualsOneWorker) {
  torch::set_num_threads(1);
  for (ShardKind kind : kKinds) {
    for (int ranks : {2, 3, 4}) {
      for (int micro_batches : {1, 3}) {
        for (bool recompute : {false, true}) {
          expect_equals_one_worker({kind, ranks, micro_batches, recompute}, sync::Turn::in_line);
        }
      }
    }
  }
}

TEST(Shard, EqualsOneWorkerInTheBackgroundInHalvesAndInLargerUnits) {
  for (ShardKind kind : kKinds) {
    for (auto turn : {sync::Turn::background, sync::Turn::in_line}) {
      expect_equals_one_worker({kind, 2, 3, true}, turn);
      expect_equals_one_worker({kind, 2, 3, false, /*halves=*/true}, turn);
      expect_equals_one_worker({kind, 2, 3, false, false, /*accumulate_whole=*/true}, turn);
      expect_equals_one_worker({kind, 3, 1, true, false, false, /*segment=*/2}, turn);
      expect_equals_one_worker({kind, 1, 2, false, false, false, /*segment=*/0}, turn);
    }
  }
}

TEST(Shard, WholeWeightsAndStatesComeBackUnderAnyNumberOfWorkers) {
  nn::Named whole, state;
  OddNet pattern(9);
  for (auto& item : pattern.named_parameters()) {
    whole.emplace_back(item.key(), item.value().detach());
    if (!item.value().requires_grad()) continue;
    state.emplace_back(item.key() + ".momentum", torch::randn_like(item.value()).detach());
    state.emplace_back(item.key() + ".step", torch::tensor(static_cast<std::int64_t>(state.size())));
  }
  for (ShardKind kind : kKinds) {
    for (int ranks : {1, 2, 3, 4}) {
      run_threads(ranks, [&](Communicator& comm) {
        OddNet net(1);
        Stage stage(net, net.chain(), 0, 5, {.segment = 1});
        Sharded sharded(units_of(stage), comm, {.what = kind});
        sharded.load_weights(whole);
        expect_close(weights_of(sharded.whole_weights()), weights_of(whole), 1e-300);
        const auto pieces = sharded.shard_state(state);
        EXPECT_EQ(pieces.size(), 2 * sharded.shards().size());
        expect_close(weights_of(sharded.whole_state(pieces)), weights_of(state), 1e-300);
        const auto at_root = weights_of(sharded.whole_state(pieces, Sharded::At::rank0));
        const auto weights_at_root = weights_of(sharded.whole_weights(Sharded::At::rank0));
        if (comm.rank() == 0) {
          expect_close(at_root, weights_of(state), 1e-300);
          expect_close(weights_at_root, weights_of(whole), 1e-300);
        } else {
          EXPECT_TRUE(at_root.empty() && weights_at_root.empty());
        }
        auto short_of_one = whole;
        short_of_one.pop_back();
        EXPECT_THROW(sharded.load_weights(short_of_one), DataError);
      });
    }
  }
}

TEST(Shard, NamesWhatIsNotFinite) {
  for (ShardKind kind : kKinds) {
    run_threads(3, [&](Communicator& comm) {
      OddNet net(1);
      Stage stage(net, net.chain(), 0, 5, {.segment = 1, .input_gradients = false});
      Sharded sharded(units_of(stage), comm, {.what = kind, .check_finite = true});
      stage.set_watch(&sharded);
      auto input = mine(comm, samples(0)).clone();
      if (comm.rank() == 1) input[0][0] = std::numeric_limits<double>::infinity();  // tanh makes it 1, its weight's NaN
      sharded.tell({1, static_cast<float>(comm.rank()), 0, 0.5f});
      run_step(stage, input, mine(comm, targets()), 1);
      sharded.finish();
      EXPECT_EQ(sharded.told(), (std::array<float, 4>{3, 3, 0, 1.5f}));
      ASSERT_EQ(sharded.bad_gradients().size(), 1u);
      EXPECT_EQ(sharded.bad_gradients()[0].rank, 1);
      EXPECT_EQ(sharded.bad_gradients()[0].parameter, "in.weight");
      sharded.gather_weights();
      run_step(stage, mine(comm, samples(0)), mine(comm, targets()), 1);
      sharded.finish();
      EXPECT_TRUE(sharded.bad_gradients().empty());
      const double norm = sharded.grad_norm();
      sharded.scale_gradients(0.5);
      EXPECT_NEAR(sharded.grad_norm(), norm / 2, 1e-12);
    });
  }
}

// One worker gives up in the middle of a step, the others hear of it while they wait.
TEST(Shard, LeavesNothingUnderWay) {
  EXPECT_THROW(run_threads(2,
                           [](Communicator& comm) {
                             OddNet net(1);
                             Stage stage(net, net.chain(), 0, 5, {.segment = 1});
                             Sharded sharded(units_of(stage), comm, {.turn = sync::Turn::background});
                             stage.set_watch(&sharded);
                             stage.forward(0, {samples(0)});
                             sharded.before_forward(0);  // starts to fetch the next as well
                             if (comm.rank() == 1) throw DataError("a file is broken");
                             stage.forward(1, {samples(0)});
                           }),
               Error);
}

TEST(Shard, RefusesWhatItCannotDo) {
  run_threads(2, [](Communicator& comm) {
    OddNet net(1);
    Stage stage(net, net.chain(), 0, 5, {.segment = 1});
    EXPECT_THROW(Sharded(units_of(stage), comm, {.what = ShardKind::none}), ConfigError);
    EXPECT_THROW(Sharded(units_of(stage), comm, {.op = Op::max}), ConfigError);
    auto units = units_of(stage);
    if (comm.rank() == 1) units.back().clear();
    EXPECT_THROW(Sharded(units, comm, {}), ConfigError);
    Mesh mesh(comm, {.pipe = 2});
    EXPECT_THROW(shard(net, net.chain(), mesh), ConfigError);
  });
  EXPECT_THROW(parse_shard_kind("weights"), ConfigError);
  for (ShardKind kind : kKinds) EXPECT_EQ(parse_shard_kind(name(kind)), kind);
}

// Batches of different sizes, micro-batches, evaluation before and after the optimizer's step.
TEST(Shard, IsThreeLinesInAProgram) {
  const auto oracle = one_worker(4);
  for (ShardKind kind : kKinds) {
    for (auto turn : {sync::Turn::background, sync::Turn::in_line}) {
      run_threads(2, [&](Communicator& world) {
        Mesh mesh(world, {.data = 2});
        OddNet model(1 + world.rank());
        auto net = shard(model, model.chain(), mesh, {.what = kind, .micro_batches = 3, .turn = turn});
        Optimizers with(net.sharded().shards());
        EXPECT_EQ(net.parameters().size(), net.sharded().shards().size());
        auto part = [&](const torch::Tensor& all) { return world.rank() == 0 ? all.slice(0, 0, 4) : all.slice(0, 4); };
        double loss = 0;
        for (int s = 0; s < 4; ++s) {
          loss =
              net.step(part(samples(s)), part(targets()), [](const torch::Tensor& output, const torch::Tensor& target) {
                return torch::cross_entropy_loss(output, target);
              });
          if (s == 1) net.evaluate(samples(0));
          with.step();
        }
        EXPECT_GT(loss, 0);
        auto output = net.evaluate(samples(0));
        EXPECT_EQ(output.size(0), kOddSamples);
        expect_close(weights_of(net.sharded().whole_weights()), oracle.weights, 1e-7);
        const auto times = net.sharded().shard_times();
        EXPECT_GT(times.communication, 0);
        EXPECT_GT(times.scattered_bytes, 0u);
        EXPECT_NE(net.sharded().describe().find(name(kind)), std::string::npos);
      });
    }
  }
}

// What is sent: a whole gradient scattered for each micro-batch, weights gathered once for forward and once for
// backward, but for the segment at which forward turns.
TEST(Shard, GathersAndScattersNoMoreThanItSays) {
  run_threads(2, [](Communicator& comm) {
    for (ShardKind kind : kKinds) {
      torch::nn::Sequential model(Linear(64, 64), Linear(64, 64), Linear(64, 64), Linear(64, 6));
      auto chain = nn::chain_of(model);
      std::uint64_t all = 0, last = 0;
      for (auto& parameter : model->parameters()) all += parameter.nbytes();
      for (auto& parameter : model->ptr(3)->parameters()) last += parameter.nbytes();
      Stage stage(*model, chain, 0, 4, {.segment = 1, .input_gradients = false});
      Sharded sharded(units_of(stage), comm, {.what = kind});
      stage.set_watch(&sharded);
      const double slack = 64. * 2 * 4 * 2;  // padding of every unit, up to two lines
      for (int s = 0; s < 3; ++s) {
        stage.backward(0, {stage.forward(0, {torch::ones({2, 64})}).at(0)}, true);
        sharded.finish();
        sharded.gather_weights();
        EXPECT_NEAR(sharded.shard_times().scattered_bytes, all, slack);
        const auto gathered = static_cast<double>(sharded.shard_times().gathered_bytes);
        if (kind != ShardKind::parameters) {
          EXPECT_NEAR(gathered, all, slack);
        } else if (s > 0) {
          EXPECT_NEAR(gathered, 2 * all - last, 2 * slack);
        }
      }
    }
  });
}

TEST(Shard, ForeseesTheStepBefore) {
  UseOrder order(3);
  auto walk = [&](std::vector<std::pair<std::size_t, bool>> uses) {
    std::vector<int> next;
    for (auto [segment, backward] : uses) {
      order.enter(segment, backward);
      next.push_back(static_cast<int>(order.next(false).value_or(99)));
    }
    order.end_step();
    return next;
  };
  using Uses = std::vector<std::pair<std::size_t, bool>>;
  const Uses plain{{0, false}, {1, false}, {2, false}, {2, true}, {1, true}, {0, true}};
  EXPECT_EQ(walk(plain), (std::vector<int>{1, 2, 99, 1, 0, 99}));
  EXPECT_EQ(walk(plain), (std::vector<int>{1, 2, 2, 1, 0, 99}));
  EXPECT_EQ(walk({{0, false}, {1, false}, {0, false}, {1, false}}), (std::vector<int>{1, 2, 1, 2}));
}

}  // namespace
}  // namespace trireme::parallel::shard_tests

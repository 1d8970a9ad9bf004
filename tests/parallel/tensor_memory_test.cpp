// Counted bytes against tensors of known size, and the formula against what sharded training really holds.
#include "trireme/parallel/tensor_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "trireme/parallel/memory_formula.h"
#include "trireme/parallel/shard/shard.h"

namespace trireme::parallel::memory_tests {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

torch::Tensor mebibytes(int count) { return torch::empty({count * kMiB / 4}); }

TEST(Memory, CountsWhatIsLiveAndTheMost) {
  auto before = mebibytes(8);
  MemoryWatch watch;
  EXPECT_EQ(watch.all().live, 0);
  auto a = mebibytes(2);
  {
    auto b = mebibytes(3);
    EXPECT_EQ(watch.all().live, 5 * kMiB);
  }
  before.reset();  // made before the watch
  EXPECT_EQ(watch.all().live, 2 * kMiB);
  EXPECT_EQ(watch.all().peak, 5 * kMiB);
  watch.reset_peak();
  EXPECT_EQ(watch.all().peak, 2 * kMiB);
  EXPECT_EQ(watch.of(MemoryClass::rest).live, 2 * kMiB);
  auto view = a.view({2, -1});
  EXPECT_EQ(watch.all().live, 2 * kMiB);
}

TEST(Memory, CountsFreesOnOtherThreadsAndLeavesTheirTensorsOut) {
  MemoryWatch watch;
  auto tensor = mebibytes(4);
  torch::Tensor theirs;
  std::thread other([&] {
    tensor.reset();
    theirs = mebibytes(6);
    MemoryWatch own;
    auto more = mebibytes(1);
    EXPECT_EQ(own.all().live, kMiB);
  });
  other.join();
  EXPECT_EQ(watch.all().live, 0);
  EXPECT_EQ(watch.all().peak, 4 * kMiB);
}

TEST(Memory, CountsByClassAndInWatchesWithinWatches) {
  MemoryWatch outer;
  torch::Tensor kept;
  {
    MemoryWatch inner;
    MemoryClassScope scope(MemoryClass::optimizer);
    kept = mebibytes(2);
    MemoryClassScope deeper(MemoryClass::parameters);
    auto short_lived = mebibytes(1);
    EXPECT_EQ(inner.of(MemoryClass::optimizer).live, 2 * kMiB);
    EXPECT_EQ(inner.of(MemoryClass::parameters).live, kMiB);
  }
  EXPECT_EQ(outer.of(MemoryClass::optimizer).live, 2 * kMiB);
  EXPECT_EQ(outer.of(MemoryClass::parameters).live, 0);
  EXPECT_EQ(outer.of(MemoryClass::parameters).peak, kMiB);
  kept.reset();
  EXPECT_EQ(outer.all().live, 0);
}

TEST(Memory, CountsTheTransportsHeap) {
  run_threads(2, [](Communicator& comm) {
    MemoryWatch watch;
    auto tensor = heap_tensor(comm, 1000, torch::kFloat32, MemoryClass::gradients);
    auto alias = tensor.slice(0, 10, 20);
    tensor.reset();
    EXPECT_EQ(watch.of(MemoryClass::gradients).live, 4000);
    alias.reset();
    EXPECT_EQ(watch.all().live, 0);
  });
}

TEST(Memory, FormulaOfActivations) {
  const std::vector<PieceMemory> pieces{{10, 1}, {20, 2}, {30, 3}, {40, 4}, {50, 5}};
  EXPECT_EQ(activation_bytes(pieces, 0), 151);
  EXPECT_EQ(activation_bytes(pieces, 0, 2), 302);
  EXPECT_EQ(activation_bytes(pieces, 2), (1 + 3 + 5) + 70);
  EXPECT_EQ(activation_bytes(pieces, 2, 3), 3 * (1 + 3 + 5) + 70);
  EXPECT_EQ(activation_bytes({}, 2), 0);
}

// Adam by hand, so that its state is what the formula says and nothing else.
struct Moments {
  explicit Moments(const nn::Named& shards) : pieces(shards) {
    MemoryClassScope scope(MemoryClass::optimizer);
    for (const auto& [name, piece] : shards) {
      first.push_back(torch::zeros_like(piece));
      second.push_back(torch::zeros_like(piece));
    }
  }
  void step() {
    torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      const auto gradient = pieces[k].second.grad();
      first[k].mul_(0.9).add_(gradient, 0.1);
      second[k].mul_(0.999).addcmul_(gradient, gradient, 0.001);
      pieces[k].second.addcdiv_(first[k], second[k].sqrt().add_(1e-8), -0.001);
    }
  }
  nn::Named pieces;
  std::vector<torch::Tensor> first, second;
};

struct Measured {
  double live = 0;          // parameters, gradients and optimizer between two steps
  double most_weights = 0;  // within them
  double most_gradients = 0;
  double parameters = 0, largest_unit = 0;
};

Measured measure(ShardKind kind, int ranks, sync::Turn turn) {
  Measured found;
  run_threads(ranks, [&](Communicator& comm) {
    MemoryWatch watch;
    torch::nn::Sequential model;
    {
      MemoryClassScope scope(MemoryClass::parameters);
      for (int k = 0; k < 8; ++k) model->push_back(torch::nn::Linear(100, 100));
    }
    auto chain = nn::chain_of(model);
    Stage stage(*model, chain, 0, 8, {.segment = 1, .recompute = true, .input_gradients = false});
    Sharded sharded(units_of(stage), comm, {.what = kind, .turn = turn});
    stage.set_watch(&sharded);
    Moments optimizer(sharded.shards());
    for (int s = 0; s < 2; ++s) {
      watch.reset_peak();
      for (int m = 0; m < 2; ++m) stage.backward(m, {stage.forward(m, {torch::ones({4, 100})}).at(0)}, m == 1);
      sharded.finish();
      optimizer.step();
      sharded.gather_weights();
    }
    if (comm.rank() != 1) return;
    for (auto what : {MemoryClass::parameters, MemoryClass::gradients, MemoryClass::optimizer}) {
      found.live += static_cast<double>(watch.of(what).live);
    }
    found.most_weights = static_cast<double>(watch.of(MemoryClass::parameters).peak);
    found.most_gradients = static_cast<double>(watch.of(MemoryClass::gradients).peak);
    found.parameters = 8 * (100 * 100 + 100);
    found.largest_unit = static_cast<double>(sharded.largest_unit());
  });
  return found;
}

TEST(Memory, OfShardedTrainingIsWhatTheFormulaSays) {
  torch::set_num_threads(1);
  for (ShardKind kind : {ShardKind::optimizer, ShardKind::gradients, ShardKind::parameters}) {
    for (auto turn : {sync::Turn::background, sync::Turn::in_line}) {
      if (turn == sync::Turn::background && kind != ShardKind::parameters) continue;  // many waits, few cores
      SCOPED_TRACE(name(kind));
      const auto found = measure(kind, 4, turn);
      MemoryFormula formula{.parameters = found.parameters,
                            .optimizer_tensors = 2,
                            .shard = kind,
                            .ranks = 4,
                            .largest_unit = found.largest_unit};
      EXPECT_NEAR(found.live / formula.total(), 1, 0.05);
      // At most two units of each are whole at a time, and a shard may be arriving.
      const double unit = found.largest_unit * 4;
      const double weights = kind == ShardKind::parameters ? 2 * unit : 0,
                   gradients = kind == ShardKind::optimizer ? 0 : 2 * unit;
      EXPECT_LE(found.most_weights, 1.05 * formula.parameter_bytes() + weights);
      EXPECT_LE(found.most_gradients, 1.05 * formula.gradient_bytes() + gradients);
      if (kind != ShardKind::parameters) continue;
      const MemoryFormula alone{.parameters = found.parameters, .optimizer_tensors = 2};
      EXPECT_NEAR(found.live / (alone.total() / 4), 1, 0.15);
    }
  }
}

// A linear layer makes nothing that backward needs (tanh keeps its own result, which the next linear shares), so that
// the formula is exact but for the gradients under way.
TEST(Memory, OfActivationsIsWhatTheFormulaSays) {
  // Large enough that the state of a random generator, which every segment keeps, is little beside it.
  constexpr std::int64_t kBatch = 4096, kWidth = 32, kPairs = 16;
  constexpr double kBytes = kBatch * kWidth * 4;
  std::vector<PieceMemory> pieces;
  torch::nn::Sequential model;
  for (int k = 0; k < kPairs; ++k) {
    model->push_back(torch::nn::Linear(kWidth, kWidth));
    model->push_back(torch::nn::Tanh());
    pieces.push_back({0, kBytes});
    pieces.push_back({kBytes, kBytes});
  }
  auto chain = nn::chain_of(model);
  struct Bytes {
    double kept, peak;
  };
  auto measure_stage = [&](bool recompute) {
    Stage stage(*model, chain, 0, chain.size(), {.segment = 4, .recompute = recompute, .input_gradients = false});
    MemoryWatch watch;
    auto output = stage.forward(0, {torch::ones({kBatch, kWidth})});
    const auto kept = static_cast<double>(watch.all().live);
    watch.reset_peak();
    stage.backward(0, output, true);
    for (auto& parameter : model->parameters()) parameter.mutable_grad().reset();
    return Bytes{kept, static_cast<double>(watch.all().peak)};
  };
  const auto plain = measure_stage(false), again = measure_stage(true);
  EXPECT_NEAR(plain.kept / activation_bytes(pieces, 0), 1, 0.03);
  const double segment = 2 * kBytes;  // what one adds when it is computed again
  EXPECT_NEAR((again.kept - kBytes) / (activation_bytes(pieces, 4) - segment), 1, 0.03);  // the output is there too
  EXPECT_LE(again.peak, activation_bytes(pieces, 4) + 6 * kBytes);
  EXPECT_LT(again.peak, plain.peak * 0.9);
}

}  // namespace
}  // namespace trireme::parallel::memory_tests

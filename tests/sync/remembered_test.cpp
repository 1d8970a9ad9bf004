// What codecs remember goes on: exactly with as many workers, and without a loss with others.
#include <gmock/gmock.h>

#include <cmath>

#include "trireme/collective/run/communicator_impl.h"
#include "trireme/sync/exchange/remembered.h"

namespace trireme::sync::remembered_test {
namespace {

const std::vector<compress::Tensor> kTensors{
    {"small.bias", 700, 1, 0}, {"fc.weight", 64 * 48, 64, 1}, {"odd", 3001, 1, 2}};
constexpr std::size_t kCount = 700 + 64 * 48 + 3001;

std::vector<float> input(int rank, int round) {
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    x[i] = std::sin(static_cast<float>(i) * (0.1f + static_cast<float>(rank)) + static_cast<float>(round));
  }
  return x;
}

Codes codes_of(const std::string& codec) {
  return {.rules = {codec}, .seed = 3, .steps_per_epoch = 4, .momentum = codec == "dgc" ? 0.9 : 0.0};
}

std::vector<float> step(CompressedMean& mean, Communicator& world, int round) {
  auto memory = world.allocate<float>(kCount);
  const auto mine = input(world.rank(), round);
  std::copy(mine.begin(), mine.end(), memory.get());
  mean({memory.get(), kCount});
  return {memory.get(), memory.get() + kCount};
}

TEST(Remembered, AsManyWorkersGoOnExactly) {
  for (const compress::CodecKind& kind : compress::codecs()) {
    run_threads(2, [&](Communicator& world) {
      const auto codes = codes_of(std::string(kind.name));
      CompressedMean through(world, kTensors, codes, Op::sum);
      for (int round = 0; round < 3; ++round) step(through, world, round);
      CompressedMean other(world, kTensors, codes, Op::sum);
      EXPECT_THAT(recall(other, remembered(through)), ::testing::IsEmpty()) << kind.name;
      for (int round = 3; round < 6; ++round) {
        EXPECT_EQ(step(through, world, round), step(other, world, round)) << kind.name;
      }
    });
  }
}

// Of all workers, by element.
std::vector<double> sums(const std::vector<Remembered>& all, const std::string& name) {
  std::vector<double> sum;
  for (const auto& one : all) {
    const auto& values = one.floats.at(name);
    sum.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
  }
  return sum;
}

TEST(Remembered, OtherWorkersShareTheErrorsOut) {
  for (const auto op : {Op::sum, Op::avg}) {
    for (const std::string codec : {"topk:0.1", "dgc", "int8", "powersgd"}) {
      SCOPED_TRACE(codec);
      std::vector<Remembered> before(2), after(3);
      run_threads(2, [&](Communicator& world) {
        CompressedMean mean(world, kTensors, codes_of(codec), op);
        for (int round = 0; round < 3; ++round) step(mean, world, round);
        before[static_cast<std::size_t>(world.rank())] = remembered(mean);
      });
      run_threads(3, [&](Communicator& world) {
        CompressedMean mean(world, kTensors, codes_of(codec), op);
        EXPECT_THAT(recall(mean, shared_out(mean, before)), ::testing::IsEmpty());
        after[static_cast<std::size_t>(world.rank())] = remembered(mean);
        step(mean, world, 4);
      });
      // What the next mean would get of them: a sum, or a sum over the workers.
      const double was = op == Op::avg ? 2 : 1, is = op == Op::avg ? 3 : 1;
      for (const auto& [name, values] : before[0].floats) {
        if (name.find(".again.") != std::string::npos) continue;
        const auto then = sums(before, name), now = sums(after, name);
        for (std::size_t i = 0; i < then.size(); ++i) ASSERT_NEAR(now[i] / is, then[i] / was, 1e-5) << name;
      }
      if (codec != "int8") continue;
      auto whole = [](const std::vector<Remembered>& all) {
        std::vector<float> joined;
        for (const auto& one : all) {
          const auto& share = one.floats.at("fc.weight.again.error");
          joined.insert(joined.end(), share.begin(), share.end());
        }
        return joined;
      };
      EXPECT_EQ(whole(before), whole(after));
    }
  }
}

TEST(Remembered, AnotherCodecTakesTheErrorsAndSaysWhatItLacks) {
  run_threads(1, [&](Communicator& world) {
    CompressedMean mean(world, kTensors, codes_of("topk:0.1"), Op::sum),
        other(world, kTensors, codes_of("dgc"), Op::sum);
    step(mean, world, 0);
    auto kept = remembered(mean);
    EXPECT_THAT(recall(other, kept), ::testing::ElementsAre("small.bias", "fc.weight", "odd"));
    EXPECT_EQ(remembered(other).floats.at("odd.error"), kept.floats.at("odd.error"));
    kept.bytes.at("odd.rest").pop_back();
    EXPECT_THROW(recall(mean, kept), DataError);
    kept.floats.at("fc.weight.error")[3] = NAN;
    try {
      recall(mean, kept);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("fc.weight"));
    }
  });
}

}  // namespace
}  // namespace trireme::sync::remembered_test

// Means of codes: every codec, by its aggregation, over real transports.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/net/worlds.h"
#include "tests/sanitized.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/sync/exchange/compressed_mean.h"

namespace trireme::sync {
namespace {

using ::testing::HasSubstr;

// A tensor that is too small for codes, a matrix and a vector of odd length.
const std::vector<compress::Tensor> kTensors{
    {"small.bias", 700, 1, 0}, {"fc.weight", 64 * 48, 64, 1}, {"odd", 3001, 1, 2}};
constexpr std::size_t kCount = 700 + 64 * 48 + 3001;

// With enough of a tensor in a message for a short test.
std::string shortened(const compress::CodecKind& kind) {
  std::string text(kind.name);
  for (const Setting& setting : kind.settings) {
    if (setting.name == "fraction") text += text == kind.name ? ":fraction=0.2" : ",fraction=0.2";
    if (setting.name == "warmup") text += ",warmup=0";
  }
  return text;
}

float input(int rank, std::size_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15u ^ (i + 7) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  x *= 0x94D049BB133111EBu;
  const auto uniform = static_cast<float>(x >> 40) * 0x1p-24f - 0.5f;
  return uniform * uniform * uniform + (i % 3 == 0 ? 0.05f : 0.0f);
}

std::vector<float> inputs(int rank) {
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) x[i] = input(rank, i);
  return x;
}

std::vector<double> mean_of_inputs(int ranks) {
  std::vector<double> mean(kCount);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < kCount; ++i) mean[i] += static_cast<double>(input(rank, i)) / ranks;
  }
  return mean;
}

// `rounds` means of the same inputs; of every rank, the results of all.
using Results = std::vector<std::vector<std::vector<float>>>;
using TakeRound = std::function<void(CompressedMean&, std::span<float>, int round)>;
Results run(int ranks, const std::string& codec, int rounds, const TakeRound& exchange, Op op = Op::avg) {
  Results results(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    CompressedMean mean(world, kTensors, {.rules = {codec}}, op);
    auto memory = world.allocate<float>(kCount);
    for (int round = 0; round < rounds; ++round) {
      const auto x = inputs(world.rank());
      std::ranges::copy(x, memory.get());
      exchange(mean, {memory.get(), kCount}, round);
      results[static_cast<std::size_t>(world.rank())].emplace_back(memory.get(), memory.get() + kCount);
    }
  });
  return results;
}

void all_at_once(CompressedMean& mean, std::span<float> x, int) { mean(x); }

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    all += b[i] * b[i];
  }
  return std::sqrt(apart / all);
}

class Means : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Means, ::testing::Values(1, 2, 3, 4));

// Whatever a message lacks, the next ones bring, or it is right on average: the mean over rounds goes to the mean.
TEST_P(Means, OverManyRoundsNothingIsLost) {
  const int ranks = GetParam(), rounds = trireme::test::kSanitized ? 15 : 60;
  const auto truth = mean_of_inputs(ranks);
  for (const auto& kind : compress::codecs()) {
    SCOPED_TRACE(kind.name);
    const auto results = run(ranks, shortened(kind), rounds, all_at_once);
    for (const auto& its : results) EXPECT_EQ(its, results[0]);  // the same bits on every rank
    std::vector<double> sum(kCount);
    for (const auto& result : results[0]) {
      for (std::size_t i = 0; i < kCount; ++i) sum[i] += static_cast<double>(result[i]) / rounds;
    }
    EXPECT_LT(distance(sum, truth), 15.0 / rounds);  // what is still carried counts less and less
    for (std::size_t i = 0; i < 700; ++i) ASSERT_NEAR(results[0][0][i], truth[i], 1e-6);  // too small for codes
  }
}

// The error that is fed back is keyed by tensor: how tensors travel together, and on which thread, changes no bit.
TEST_P(Means, BucketsMakeNoDifference) {
  const int ranks = GetParam(), rounds = 5;
  const Segment small{0, 0, 700, 1}, matrix{1, 700, 64 * 48, 64}, odd{2, 700 + 64 * 48, 3001, 1};
  for (const auto& kind : compress::codecs()) {
    SCOPED_TRACE(kind.name);
    auto bucket = [](std::span<float> x, const std::vector<Segment>& segments) {
      auto moved = segments;  // offsets count from the bucket's beginning
      for (auto& segment : moved) segment.offset -= segments[0].offset;
      const auto& last = segments.back();
      return std::pair(moved, x.subspan(segments[0].offset, last.offset + last.count - segments[0].offset));
    };
    auto in_two = [&](CompressedMean& mean, std::span<float> x, int round) {
      const auto turn = round % 2 == 0 ? Turn::background : Turn::in_line;
      const auto one = round < 2 ? std::vector{small, matrix} : std::vector{small};
      const auto two = round < 2 ? std::vector{odd} : std::vector{matrix, odd};
      const auto [first, first_memory] = bucket(x, one);
      const auto [second, second_memory] = bucket(x, two);
      auto a = mean.start({0, View(first_memory), first}, turn);
      auto b = mean.start({1, View(second_memory), second}, turn);
      a->wait();
      b->wait();
    };
    EXPECT_EQ(run(ranks, shortened(kind), rounds, in_two), run(ranks, shortened(kind), rounds, all_at_once));
  }
}

TEST_P(Means, SumsAreRanksTimesMeans) {
  const int ranks = GetParam();
  for (const auto& kind : compress::codecs()) {
    SCOPED_TRACE(kind.name);
    const auto means = run(ranks, shortened(kind), 1, all_at_once),
               sums = run(ranks, shortened(kind), 1, all_at_once, Op::sum);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double expected = static_cast<double>(means[0][0][i]) * ranks;
      ASSERT_NEAR(sums[0][0][i], expected, 0.004 * std::abs(expected) + 2e-3) << i;
    }
  }
}

// What the transport counts is what the formulas say.
TEST(MeansOnTheWire, BytesAreTheFormulas) {
  constexpr int kRanks = 3;
  for (const auto& kind : compress::codecs()) {
    SCOPED_TRACE(kind.name);
    auto world = net::test::tcp_world(kRanks);
    net::test::rethrow_first(net::test::run_ranks(kRanks, [&](int rank) {
      auto comm = join_world(std::move(world[static_cast<std::size_t>(rank)]), {.algorithm = "ring"});
      CompressedMean mean(comm, kTensors, {.rules = {shortened(kind)}}, Op::avg);
      std::vector<std::unique_ptr<compress::Codec>> same;  // to know what was encoded, in the same way
      for (const auto& tensor : kTensors) {
        compress::Context context{.rank = comm.rank(), .workers = kRanks};
        same.push_back(compress::Rules(shortened(kind)).of(tensor).make(tensor, context));
      }
      auto x = inputs(comm.rank());
      std::size_t terms = 0, slots = 0, codes = 0, gathered = 0, at = 0;
      for (std::size_t k = 0; k < same.size(); ++k) {
        const std::span<const float> mine(x.data() + at, kTensors[k].count);
        at += kTensors[k].count;
        auto& codec = *same[k];
        switch (codec.aggregation()) {
          case compress::Aggregation::sum:
            for (int round = 0; round < codec.rounds(); ++round)
              terms += codec.terms(round) * size_of(codec.term_type());
            break;
          case compress::Aggregation::scatter:
            for (const auto& code : {shortened(kind), std::string(kind.again)}) {
              const auto count = share_of(mine.size(), codec.block(), kRanks, 0).count;
              slots += (code.empty() ? codec : *compress::Choice::parse(code).make({"", count}, {})).most_bytes(count);
            }
            break;
          case compress::Aggregation::gather: {
            std::vector<std::byte> message(codec.most_bytes(mine.size()));
            codes += codec.encode(0, mine, message.data(), nullptr);
            ++gathered;
          }
        }
      }
      std::vector<std::int64_t> longest{static_cast<std::int64_t>(codes)};
      comm.all_reduce(longest, Op::max);
      const auto before = mean.bytes_sent();
      mean(x);
      const auto sent = static_cast<double>(mean.bytes_sent() - before);
      const double expected = 2.0 * (kRanks - 1) / kRanks * static_cast<double>(terms) +
                              (kRanks - 1) * static_cast<double>(slots) +
                              (kRanks - 1) * static_cast<double>(longest[0] + 8 * static_cast<std::int64_t>(gathered));
      EXPECT_NEAR(sent, expected, 64) << "rounding of blocks to elements";
    }));
  }
}

TEST(MeansOfBadNumbers, AreNamedOrLeftOut) {
  for (const auto& kind : compress::codecs()) {
    SCOPED_TRACE(kind.name);
    auto trial = [&](NotFinite bad) {
      run_threads(2, [&](Communicator& world) {
        CompressedMean mean(world, kTensors, {.rules = {shortened(kind)}}, Op::avg, bad);
        auto x = inputs(world.rank());
        if (world.rank() == 1) x[700 + 11] = NAN;
        try {
          mean.start(x)->wait();
        } catch (const Aborted&) {
          return;  // the other rank's trouble, told by its name there
        }
        for (std::size_t i = 0; i < kCount; ++i) {
          if (!std::isfinite(x[i])) throw DataError("a result is not finite");
        }
      });
    };
    if (&kind != compress::codecs().data()) {
      try {
        trial(NotFinite::is_an_error);
        ADD_FAILURE() << "taken";
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr("'fc.weight': element 11 is not finite"));
      }
      EXPECT_NO_THROW(trial(NotFinite::counts_as_zero));
    }
  }
}

TEST(MeansRehearsed, LeaveNoTrace) {
  run_threads(2, [](Communicator& world) {
    CompressedMean mean(world, kTensors, {.rules = {"int8"}}, Op::avg);
    auto exchange = mean.rehearsal(1 << 14);
    exchange();
    exchange();
    EXPECT_EQ(mean.bytes_sent(), 0u);
    EXPECT_EQ(mean.report().bytes_before, 0u);
    auto x = inputs(world.rank());
    mean(x);
    EXPECT_EQ(mean.report().bytes_before, kCount * 4);
    EXPECT_LT(mean.report().bytes_after, kCount * 4 / 2);
    EXPECT_GT(mean.report().error, 0);
    EXPECT_LT(mean.report().error, 0.02);
    EXPECT_GT(mean.report().carried, 0);
  });
}

}  // namespace
}  // namespace trireme::sync

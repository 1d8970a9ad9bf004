// Communicators that end while others still read what they shared: results must not change.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/collective/processes.h"
#include "tests/collective/worlds.h"
#include "tests/sanitized.h"
#include "trireme/collective/check/random_calls.h"

namespace trireme {
namespace {

using namespace trireme::test;

class Lifetimes : public ::testing::TestWithParam<WorldFactory> {};

TEST_P(Lifetimes, RandomCallsOverShortLivedGroupsAreRight) {
  for (int ranks : {2, 5, 7}) {
    RandomReport total;
    std::mutex mutex;
    run_ranks(GetParam().make(ranks),
              [&](Communicator& world) {
                const auto calls = world.transport() == "tcp" || kSanitized ? 60u : 400u;
                auto report = make_random_calls(world, {.calls = calls, .seed = 7, .most = 1 << 13});
                std::lock_guard lock(mutex);
                if (total.first.empty()) total = report;
              },
              {});
    EXPECT_EQ(total.wrong, 0u) << total.first;
    EXPECT_GT(total.elements, 1000u);
  }
}

// Rank 0 reads last: by then the others have ended their group and used the memory for something else.
TEST_P(Lifetimes, AStageStaysUntilTheLastReaderHasEnded) {
  constexpr int kRanks = 5;
  constexpr std::size_t kCount = 6000;  // staged whole, too long for a post
  run_ranks(GetParam().make(kRanks),
            [&](Communicator& world) {
              for (int round = 0; round < (kSanitized ? 20 : 200); ++round) {
                std::vector<float> mine(kCount, static_cast<float>(world.rank() + round)), all(kRanks * kCount);
                {
                  auto group = world.split(0, world.rank());
                  group->all_gather(mine, all);
                }
                auto reused = world.allocate<float>(kCount);
                std::fill_n(reused.get(), kCount, -1.0f);
                for (std::size_t i = 0; i < all.size(); ++i) {
                  ASSERT_EQ(all[i], static_cast<float>(i / kCount) + static_cast<float>(round)) << "round " << round;
                }
              }
            },
            {});
}

TEST_P(Lifetimes, MemoryOfEndedGroupsIsUsedAgain) {
  run_ranks(GetParam().make(3),
            [](Communicator& world) {
              std::vector<float> x(20'000, 1.0f);
              for (int i = 0; i < 150; ++i) world.split(0)->all_reduce(x, Op::max);  // a world of threads has 1 GiB
              EXPECT_EQ(x[0], 1.0f);
            },
            {});
}

INSTANTIATE_TEST_SUITE_P(, Lifetimes, ::testing::ValuesIn(world_factories()),
                         [](const auto& tested) { return std::string(tested.param.name); });

#if !defined(__SANITIZE_THREAD__)
TEST(LifetimesOfProcesses, RandomCallsOverShortLivedGroupsAreRight) {
  Processes ranks(6, {}, [](Communicator& world) {
    const auto report = make_random_calls(world, {.calls = kSanitized ? 60u : 400u, .seed = 11, .most = 1 << 14});
    if (report.wrong > 0) throw Error(report.first.empty() ? "another rank's result is wrong" : report.first);
  });
  for (const auto& outcome : ranks.wait()) EXPECT_EQ(outcome.error, "");
}
#endif

}  // namespace
}  // namespace trireme

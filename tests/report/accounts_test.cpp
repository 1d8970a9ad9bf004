// What workers did with their time, and who is slow.
#include "trireme/report/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trireme/train/group/world_group.h"

namespace trireme::train {
namespace {

TEST(Accounts, EveryoneSeesEveryone) {
  run_threads(3, [](Communicator& world) {
    WorldGroup group(world);
    Accounts mine;
    for (int step = 0; step < 50; ++step) mine.step(0.001 * (world.rank() + 1), 0.5);
    mine.step(9, 0);  // one that took long changes nothing about what is typical
    sync::Report report{.stale = {{0, 40}, {2, 11}, {500, 1}}, .compressed = sync::Compressed{900, 50}};
    auto all = mine.of_all(group, 100 + static_cast<std::uint64_t>(world.rank()), report);
    ASSERT_EQ(all.size(), 3u);
    for (int rank = 0; rank < 3; ++rank) {
      const auto& its = all[static_cast<std::size_t>(rank)];
      EXPECT_EQ(its.rank, rank);
      EXPECT_EQ(its.steps, 51);
      EXPECT_NEAR(its.compute_s, 0.05 * (rank + 1) + 9, 1e-9);
      EXPECT_NEAR(its.wait_s, 25, 1e-9);
      EXPECT_NEAR(its.typical_s, 0.001 * (rank + 1), 1e-12);
      EXPECT_EQ(its.bytes_sent, 100u + static_cast<unsigned>(rank));
      EXPECT_EQ(its.bytes_dense, 950u + static_cast<unsigned>(rank));
      EXPECT_EQ(its.stale, (std::map<std::int64_t, std::int64_t>{{0, 40}, {2, 11}, {63, 1}}));
      EXPECT_NEAR(its.mean_stale(), (2 * 11 + 63) / 52.0, 1e-12);
      EXPECT_EQ(to_json(its)["staleness"]["histogram"]["2"], 11);
    }
  });
}

std::vector<WorkerAccount> typical(std::initializer_list<double> seconds) {
  std::vector<WorkerAccount> accounts;
  for (double s : seconds) accounts.push_back({.rank = static_cast<int>(accounts.size()), .typical_s = s});
  return accounts;
}

TEST(Accounts, APersistentStragglerIsNamed) {
  auto slow = persistent_straggler(typical({0.010, 0.031, 0.011, 0.009}));
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 1);
  EXPECT_EQ(slow->text(), "rank 1 is slow: its own compute takes 31.0 ms a step, the others' 10.0 ms (3.1 times)");
  EXPECT_FALSE(persistent_straggler(typical({0.010, 0.013, 0.011})));
  EXPECT_FALSE(persistent_straggler(typical({0.010})));
  EXPECT_TRUE(persistent_straggler(typical({0.010, 0.016})));
}

TEST(Accounts, TheTableHasALinePerWorker) {
  auto accounts = typical({0.01, 0.01});
  accounts[1].stale = {{1, 3}, {4, 1}};
  accounts[1].bytes_sent = 12'345'678;
  auto table = workers_table(accounts, 0.25);
  EXPECT_EQ(std::ranges::count(table, '\n'), 4);
  EXPECT_THAT(table, ::testing::HasSubstr("stale mean/max"));
  EXPECT_THAT(table, ::testing::HasSubstr("11.8 MiB"));
  EXPECT_THAT(table, ::testing::HasSubstr("1.8/4"));
  EXPECT_THAT(table, ::testing::HasSubstr("distance to consensus 0.25"));
  EXPECT_EQ(std::ranges::count(workers_table(typical({1, 2}), -1), '\n'), 3);
}

}  // namespace
}  // namespace trireme::train

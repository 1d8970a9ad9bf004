#include "trireme/sync/exchange/touched_rows.h"

#include <gmock/gmock.h>

#include "tests/sync/loop.h"

namespace trireme::sync::test::touched_rows_test {
namespace {

const std::vector<ps::Tensor> kModel{{"a", 3}, {"table", 12, 4}, {"b", 2}, {"other", 6, 3}};

TEST(TouchedRows, AreThoseThatAreNotAllZeros) {
  const std::vector<std::string> tables{"table", "other"};
  TouchedRows rows(kModel, tables);
  std::vector<float> gradient(23), packed(23);
  gradient[3 + 2 * 3 + 1] = 5;    // the third row of the table
  gradient[3 + 12 + 2 + 1] = -1;  // the first of the other
  const auto count = rows.pack(gradient, packed.data());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (const auto& segment : rows.segments()) found.emplace_back(segment.offset, segment.count);
  EXPECT_THAT(found, ::testing::ElementsAre(std::pair(0, 3), std::pair(9, 3), std::pair(15, 4)));
  packed.resize(count);
  EXPECT_EQ(packed, (std::vector<float>{0, 0, 0, 0, 5, 0, 0, 0, 0, -1}));

  rows.pushed(100);
  std::ranges::fill(gradient, 1.0f);
  packed.resize(23);
  EXPECT_EQ(rows.pack(gradient, packed.data()), 23u);
  ASSERT_EQ(rows.segments().size(), 1u);
  const auto& report = rows.report();
  EXPECT_EQ(report.pushes, 2u);
  EXPECT_EQ(report.bytes_before, 2 * 23 * sizeof(float));
  EXPECT_EQ(report.bytes_after, 100u);
  ASSERT_EQ(report.tables.size(), 2u);
  EXPECT_EQ(report.tables[0].rows, 4u);
  EXPECT_EQ(report.tables[0].pushed, 5u);
  EXPECT_EQ(report.tables[1].pushed, 4u);
}

struct Trained {
  std::vector<std::vector<float>> model;
  std::vector<Report> report;
};

// Two workers; a step of each touches two rows of a table, and a dense tensor.
Trained trained(const std::string& strategy, std::vector<std::string> tables) {
  constexpr std::size_t kRows = 50, kWidth = 8, kAll = kRows * kWidth + 5;
  constexpr int kSteps = 7;
  Servers servers(true, 2);
  Trained all{std::vector<std::vector<float>>(2), std::vector<Report>(2)};
  run_ranks(
      net::inproc_world(2),
      [&](Communicator& world) {
        const auto rank = static_cast<std::size_t>(world.rank());
        const auto client = servers.client(world.rank());
        auto made = Choice::parse(strategy).make({.world = world,
                                                  .client = client.get(),
                                                  .tensors = {{"table", kRows * kWidth, kRows}, {"dense", 5}},
                                                  .update = {.name = "sgd"},
                                                  .tables = tables});
        auto weights = made->weights_memory(kAll), gradient = made->gradient_memory(kAll);
        for (std::size_t i = 0; i < kAll; ++i) weights[i] = static_cast<float>(uniform(1, 2, i));
        const Replica replica{{weights.get(), kAll}, {gradient.get(), kAll}};
        made->begin({&replica, 1});
        for (int step = 0; step < kSteps; ++step) {
          made->before_forward({step, 0.1});
          for (std::size_t i = 0; i < kAll; ++i) {
            const auto row = i / kWidth;
            const bool touched = row == rank + static_cast<std::size_t>(3 * step) || row == 49 || row >= kRows;
            gradient[i] = touched ? weights[i] - static_cast<float>(uniform(3, rank, i)) : 0;
          }
          made->after_backward({step, 0.1});
        }
        all.model[rank].resize(kAll);
        made->model(all.model[rank]);
        made->finish();
        all.report[rank] = made->report();
        world.barrier();
      },
      Options{});
  return all;
}

TEST(TouchedRows, OfAWorkerGiveTheWeightsOfWholeGradients) {
  for (const char* strategy : {"ps-bsp", "ps-ssp:s=0"}) {
    const auto dense = trained(strategy, {}), sparse = trained(strategy, {"table"});
    EXPECT_EQ(sparse.model, dense.model) << strategy;
    EXPECT_EQ(sparse.model[0], sparse.model[1]) << strategy;
    EXPECT_FALSE(dense.report[0].sparse);
    ASSERT_TRUE(sparse.report[0].sparse);
    const auto& did = *sparse.report[0].sparse;
    EXPECT_EQ(did.pushes, 7u);
    EXPECT_EQ(did.tables.at(0).pushed, 14u);
    EXPECT_LT(10 * did.bytes_after, 7 * did.bytes_before);
    EXPECT_EQ(dense.report[0].bytes_sent - sparse.report[0].bytes_sent, did.bytes_before - did.bytes_after);
  }
}

}  // namespace
}  // namespace trireme::sync::test::touched_rows_test

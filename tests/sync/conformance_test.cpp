// What holds for every strategy in the list.
#include "tests/collective/worlds.h"
#include "tests/sync/loop.h"

namespace trireme::sync::test {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Kind& kind : strategies()) all.emplace_back(kind.name);
  return all;
}

std::string test_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Names, EveryStrategy, ::testing::ValuesIn(names()),
                         [](const auto& test) { return test_name(test.param); });

TEST_P(EveryStrategy, EndsInConsensus) {
  for (int ranks : {1, 2, 3, 4}) {
    const auto traces = run(ranks, GetParam(), {}, 11, 0.1, 9);
    for (std::size_t rank = 1; rank < traces.result.size(); ++rank) {
      EXPECT_EQ(traces.result[rank], traces.result[0]) << ranks << " ranks";
      EXPECT_EQ(traces.model[rank], traces.model[0]) << ranks << " ranks";
    }
    for (const auto& report : traces.report) EXPECT_GE(report.wait_s, 0);
  }
}

TEST_P(EveryStrategy, Trains) {
  const Losses losses{.noisy = false, .shared = true};
  for (int ranks : {1, 3}) {
    const auto traces = run(ranks, GetParam(), losses, 400, 0.2);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(losses.gradient(0, 0, i, traces.result[0][i]), 0, 0.01) << ranks << " ranks, element " << i;
    }
  }
}

TEST_P(EveryStrategy, AskingForTheModelDisturbsNothing) {
  if (GetParam() == "hogwild" || GetParam() == "gossip-adpsgd") return;  // no two runs of these are the same
  const auto quiet = run(3, GetParam(), {}, 10, 0.1);
  const auto asked = run(3, GetParam(), {}, 10, 0.1, 4);
  EXPECT_EQ(quiet.after_step, asked.after_step);
  EXPECT_EQ(quiet.result, asked.result);
}

TEST_P(EveryStrategy, RunsOverEveryTransport) {
  if (GetParam() == "hogwild") return;  // needs threads, and says so
  for (const auto& factory : trireme::testing::world_factories()) {
    const auto traces = run(factory.make(3), GetParam(), {}, 5, 0.1, 4);
    for (const auto& result : traces.result) expect_near(result, traces.result[0], factory.name, 1e-6);
  }
}

}  // namespace
}  // namespace trireme::sync::test

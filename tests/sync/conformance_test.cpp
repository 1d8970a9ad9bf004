// What holds for every strategy in the list.
#include "tests/collective/worlds.h"
#include "tests/sync/loop.h"
#include "trireme/base/error.h"

namespace trireme::sync::test {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const StrategyKind& kind : strategies()) all.emplace_back(kind.name);
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
  const auto text = GetParam() == "diloco" ? "diloco:H=4" : GetParam();  // its momentum needs rounds to come to rest
  for (int ranks : {1, 3}) {
    const auto traces = run(ranks, text, losses, 160, 0.2);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(losses.gradient(0, 0, i, traces.result[0][i]), 0, 0.01) << ranks << " ranks, element " << i;
    }
  }
}

TEST_P(EveryStrategy, AskingForTheModelDisturbsNothing) {
  if (!Choice::parse(GetParam()).traits().repeatable) return;
  const auto quiet = run(3, GetParam(), {}, 10, 0.1);
  const auto asked = run(3, GetParam(), {}, 10, 0.1, 4);
  EXPECT_EQ(quiet.after_step, asked.after_step);
  EXPECT_EQ(quiet.result, asked.result);
}

class FailingWorker : public FlatWorker {
 public:
  FailingWorker(Communicator& world, Strategy& strategy, const Learner& learner)
      : FlatWorker(world, strategy, {}, learner), fails_(world.rank() == 1) {}
  bool compute(const Step& step) override {
    FlatWorker::compute(step);
    if (fails_ && step.number == 3) throw DataError("no such batch");
    return true;
  }

 private:
  const bool fails_;
};

// A worker that fails between forward and step: everyone stops, soon, and no memory goes while it is being read.
TEST_P(EveryStrategy, AFailureInMidStepEndsTheRun) {
  if (Choice::parse(GetParam()).kind->needs_servers) return;  // there the others go on: tests/ps
  auto failing = [&] {
    run_threads(3, [&](Communicator& world) {
      auto strategy = Choice::parse(GetParam()).make({.world = world});
      const Learner learner(world, strategy->traits());
      const std::vector<Replica> replicas{learner.replica(*strategy)};
      strategy->begin(replicas);
      FailingWorker worker(world, *strategy, learner);
      for (std::int64_t number = 0;; ++number) {
        run_step(*strategy, worker, {number, 0.1});
        world.barrier();
      }
    });
  };
  EXPECT_THROW(failing(), DataError);
}

TEST_P(EveryStrategy, RunsOverEveryTransport) {
  if (Choice::parse(GetParam()).traits().shares_memory) return;  // needs threads, and says so
  for (const auto& factory : trireme::test::world_factories()) {
    const auto traces = run(factory.make(3), GetParam(), {}, 5, 0.1, 4);
    for (const auto& result : traces.result) expect_near(result, traces.result[0], factory.name, 1e-6);
  }
}

}  // namespace
}  // namespace trireme::sync::test

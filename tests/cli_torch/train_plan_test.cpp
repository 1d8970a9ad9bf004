// Runs that follow a plan, and what every run says of its own steps.
#include <sched.h>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

// A plan with these settings.
std::string plan_file(const fs::path& path, const nlohmann::json& settings) {
  const nlohmann::json option{{"settings", settings},     {"step_s", 0.5},        {"samples_per_s", 64},
                              {"seconds_to_accuracy", 0}, {"price", 0},           {"memory_bytes", 1000},
                              {"bytes_per_step", 10},     {"why", "it is a test"}};
  const nlohmann::json parts{{"forward", 200.0},  {"backward", 200.0}, {"communication", 90.0}, {"exposed", 50.0},
                             {"optimizer", 25.0}, {"other", 25.0},     {"step", 500.0}};
  const nlohmann::json plan{{"format", "trireme-plan"},
                            {"version", 1},
                            {"objective", "step"},
                            {"model", "lenet"},
                            {"profile", "p.json"},
                            {"cluster", "c.toml"},
                            {"chosen", option},
                            {"prediction", {{"breakdown_ms", parts}}},
                            {"alternatives", nlohmann::json::array()}};
  std::ofstream(path) << plan.dump(1);
  return path.string();
}

TEST(TrainByPlan, RunsExactlyThat) {
  ScratchFolder folder;
  const auto plan = plan_file(
      folder / "plan.json",
      {{"sync.strategy", "local-sgd:H=4"}, {"sync.compress", "fp16"}, {"run.workers", "2"}, {"exchange.lanes", "1"}});
  auto done = run_well(tiny(folder / "run", {"--plan", plan, "--strategy", "local-sgd:H=4"}));
  const auto result = json_in(folder / "run" / "run.json");
  EXPECT_EQ(result["config"]["sync"]["strategy"], "local-sgd:H=4");
  EXPECT_EQ(result["config"]["sync"]["compress"], "fp16");
  EXPECT_EQ(result["summary"]["predicted"]["step_ms"], 500);
  EXPECT_GT(result["summary"]["measured"]["step_ms"], 0);
  EXPECT_THAT(done.out, HasSubstr("step: predicted 500 ms, measured "));
}

TEST(TrainByPlan, RefusesWhatContradicts) {
  ScratchFolder folder;
  const auto plan = plan_file(folder / "plan.json", {{"sync.strategy", "local-sgd:H=4"}});
  expect_refusal(run(tiny(folder / "run", {"--plan", plan, "--strategy", "allreduce"})), 2, "--strategy allreduce: ");
  expect_refusal(run(tiny(folder / "run", {"--plan", plan, "--set", "strategy=sma"})), 2, "--strategy sma: ");
  expect_refusal(run(tiny(folder / "run", {"--plan", "/nowhere/plan.json"})), 7, "/nowhere/plan.json");
  const auto wrong = plan_file(folder / "wrong.json", {{"sync.strategi", "allreduce"}});
  expect_refusal(run(tiny(folder / "run", {"--plan", wrong})), 7, "sync.strategi");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(TrainByPlan, WarnsOfFewerCoresThanWorkers) {
  ScratchFolder folder;
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  const auto plan = plan_file(folder / "plan.json", {{"run.workers", "2"}});
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const auto few = run_well(tiny(folder / "few", {"--plan", plan}));
  const auto alone = run_well(tiny(folder / "alone", {"--plan", plan_file(folder / "1.json", {{"run.workers", "1"}})}));
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  const std::string warning = "trireme: warning: " + plan + ": 2 workers share the 1 core of this host";
  const auto at = few.err.find(warning);
  EXPECT_NE(at, few.err.npos) << few.err;
  EXPECT_EQ(few.err.find("warning: ", at + warning.size()), few.err.npos) << few.err;  // once, not by each worker
  EXPECT_THAT(alone.err, Not(HasSubstr("warning")));
}

TEST(TrainByPlan, EveryRunPredictsItself) {
  ScratchFolder folder;
  auto done = run_well(tiny(folder / "run", {"--workers", "2", "--epochs", "3"}));
  EXPECT_THAT(done.out, HasSubstr("step: predicted "));
  const auto summary = json_in(folder / "run" / "run.json")["summary"];
  const double predicted = summary["predicted"]["step_ms"], measured = summary["measured"]["step_ms"];
  EXPECT_GT(predicted, 0);
  EXPECT_GT(measured, 0);
  double parts = 0;
  for (const char* part : {"forward", "backward", "exposed", "optimizer", "other"}) {
    parts += summary["predicted"]["breakdown_ms"][part].get<double>();
  }
  EXPECT_NEAR(parts, predicted, 0.25 * predicted + 1e-3);
}

}  // namespace
}  // namespace trireme::test

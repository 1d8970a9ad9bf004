// `trireme profile`, and runs that follow a plan.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

Words measured(const Words& more) {
  return Words{"profile", "--model",   "lenet",   "--data", "synthetic:1x16x16,classes=4,samples=512,test=128",
               "--batch", "16",        "--steps", "4",      "--noise-steps",
               "3",       "--threads", "1"} +
         more;
}

void expect_whole(const nlohmann::json& profile, int workers) {
  ASSERT_TRUE(profile.is_object());
  EXPECT_EQ(profile["format"], "trireme-profile-1");
  EXPECT_EQ(profile["beside"], workers);
  EXPECT_EQ(profile["batch"], 16);
  EXPECT_EQ(profile["samples"], 512);
  EXPECT_EQ(profile["residuals"].size(), 4u);
  EXPECT_GT(profile["step_s"]["p50"], 0);
  EXPECT_GT(profile["layers"].size(), 2u);
  EXPECT_GT(profile["codecs"].size(), 10u);
  EXPECT_EQ(profile["noise"]["steps"], 3 * workers);
  EXPECT_GE(profile["slowdown"], 0);
  double last = 0;
  std::int64_t bytes = 0, elements = 0;
  for (const auto& layer : profile["layers"]) bytes += layer["parameter_bytes"].get<std::int64_t>();
  for (const auto& gradient : profile["gradients"]) {
    elements += gradient["elements"].get<std::int64_t>();
    EXPECT_GE(gradient["ready_s"]["p50"].get<double>(), last);
    last = gradient["ready_s"]["p50"];
  }
  EXPECT_EQ(4 * elements, bytes);
  EXPECT_LE(last, 1.0001 * profile["backward_s"]["p50"].get<double>());
}

TEST(ProfileCommand, WritesAFileAndATable) {
  ScratchFolder folder;
  auto done = run_well(measured({"--workers", "2", "-o", (folder / "p.json").string()}));
  expect_whole(json_in(folder / "p.json"), 2);
  for (const char* part : {"conv1", "forward", "optimizer", "topk", "gradients"}) {
    EXPECT_THAT(done.out, HasSubstr(part));
  }
}

TEST(ProfileCommand, PrintsJson) {
  auto done = run_well(measured({"--workers", "1", "--json"}));
  expect_whole(nlohmann::json::parse(done.out, nullptr, false), 1);
}

TEST(ProfileCommand, Refuses) {
  expect_refusal(run(measured({"--hosts", "ns:2"})), 2, "--hosts");
  expect_refusal(run(measured({"--noise-steps", "x"})), 2, "--noise-steps");
}

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

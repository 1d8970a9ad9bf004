// What a run prints and writes.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

TEST(TrainFiles, EverythingPromisedIsThere) {
  ScratchFolder folder;
  auto out = folder / "run";
  auto done = run_well(tiny(out, {"--workers", "2", "--log-every", "4"}));
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, HasSubstr("lenet"));
  EXPECT_THAT(done.out, HasSubstr("run.json"));
  EXPECT_THAT(done.out, HasSubstr(out.string()));

  auto run_file = json_in(out / "run.json");
  EXPECT_EQ(run_file["status"], "finished");
  EXPECT_EQ(run_file["config"]["train"]["batch"], 16);
  EXPECT_EQ(run_file["summary"]["steps"], 16);  // 512 / (2 · 16)
  EXPECT_GT(run_file["summary"]["train_seconds"].get<double>(), 0);
  EXPECT_TRUE(run_file["summary"]["test_accuracy"].is_number());
  EXPECT_TRUE(run_file["summary"]["breakdown_ms"]["exposed"].is_number());

  auto metrics = json_lines(contents(out / "metrics.jsonl"));
  ASSERT_EQ(metrics.size(), 5u);  // steps 4, 8, 12, 16, and the epoch
  EXPECT_EQ(metrics[0]["step"], 4);
  EXPECT_EQ(metrics[4]["test_accuracy"], run_file["summary"]["test_accuracy"]);

  std::map<int, int> events;  // by rank
  auto trace = json_in(out / "trace.json");
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++events[event["pid"].get<int>()];
  }
  EXPECT_GT(events[0], 0);
  EXPECT_GT(events[1], 0);

  EXPECT_EQ(checkpoints(out).size(), 1u);
  EXPECT_TRUE(fs::exists(out / "best.safetensors"));
  int tensorboard = 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    tensorboard += entry.path().filename().string().starts_with("events.out.tfevents.");
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("tmp")));
  }
  EXPECT_EQ(tensorboard, 1);
}

TEST(TrainFiles, JsonIsOneLine) {
  ScratchFolder folder;
  auto done = run_well(tiny(folder / "run", {"--workers", "2", "--json"}));
  EXPECT_EQ(done.err, "");
  auto lines = json_lines(done.out);
  ASSERT_EQ(lines.size(), 1u) << done.out;
  EXPECT_EQ(lines[0]["test_accuracy"], json_in(folder / "run" / "run.json")["summary"]["test_accuracy"]);
  EXPECT_GT(lines[0]["train_seconds"].get<double>(), 0);
  EXPECT_EQ(lines[0]["out"], (folder / "run").string());
}

TEST(TrainFiles, QuietIsOneLine) {
  ScratchFolder folder;
  auto done = run_well(tiny(folder / "run", {"--workers", "1", "--quiet"}));
  EXPECT_EQ(lines_of(done.out).size(), 1u) << done.out;
  EXPECT_EQ(done.err, "");
}

TEST(TrainFiles, ConfigPrintedIsConfigRead) {
  ScratchFolder folder;
  auto first = run_well(tiny(folder / "run", {"--optimizer", "adamw", "--weight-decay", "0.05", "--augment",
                                              "--model-arg", "width=8", "--print-config"}));
  fs::path file = folder / "config.json";
  std::ofstream(file) << first.out;
  auto second = run_well({"train", "--config", file.string(), "--print-config"});
  EXPECT_EQ(first.out, second.out);
  EXPECT_FALSE(fs::exists(folder / "run"));
  auto json = nlohmann::json::parse(second.out);
  EXPECT_EQ(json["train"]["optimizer"], "adamw");
  EXPECT_EQ(json["model"]["args"]["width"], "8");
}

TEST(TrainFiles, LaterSettingsWin) {
  ScratchFolder folder;
  fs::path file = folder / "config.toml";
  std::ofstream(file) << "[train]\nbatch = 5\nlr = 0.5\nepochs = 7\nseed = 3\n";
  StartOptions environment;
  environment.env = {{"TRIREME_LR", "0.25"}, {"TRIREME_EPOCHS", "8"}, {"TRIREME_SEED", "4"}};
  auto done = run_well(
      {"train", "--config", file.string(), "--epochs", "9", "--seed", "5", "--set", "train.seed=6", "--print-config"},
      environment);
  auto settings = nlohmann::json::parse(done.out)["train"];
  EXPECT_EQ(settings["batch"], 5);
  EXPECT_EQ(settings["lr"], 0.25);
  EXPECT_EQ(settings["epochs"], 9);
  EXPECT_EQ(settings["seed"], 6);
}

TEST(TrainFiles, ARunAnewForgetsTheOldOne) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "1", "--checkpoint-every", "8"}));
  EXPECT_EQ(checkpoints(out).size(), 2u);
  run_well(tiny(out, {"--workers", "1", "--steps", "5", "--log-every", "1"}));
  ASSERT_EQ(checkpoints(out).size(), 1u);
  EXPECT_EQ(metadata(checkpoints(out)[0])["step"], 5);
  EXPECT_EQ(json_lines(contents(out / "metrics.jsonl")).size(), 5u);
}

}  // namespace
}  // namespace trireme::test

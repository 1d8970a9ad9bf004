// Models that are cut, from the command line: they learn what one worker learns, and go on under another mesh.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class MeshRuns : public ::testing::Test {
 protected:
  // The trained weights, one after the other. Running statistics are no weights: replicas have their own, and the mean
  // is kept.
  std::vector<float> ended(const Words& more) {
    auto out = folder.path() / ("run" + std::to_string(count_++));
    run_well(tiny(out, more));
    return values_in(out);
  }

  static std::vector<float> values_in(const fs::path& out) {
    std::vector<float> values;
    for (const auto& [name, bytes] : weights(out)) {
      if (name.find("running_") != std::string::npos || name.find("tracked") != std::string::npos) continue;
      std::vector<float> some(bytes.size() / 4);
      std::memcpy(some.data(), bytes.data(), some.size() * 4);
      values.insert(values.end(), some.begin(), some.end());
    }
    return values;
  }

  static void expect_close(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double{a[i]} - b[i]));
    EXPECT_LT(worst, 1e-4) << what;
  }

  ScratchFolder folder;

 private:
  int count_ = 0;
};

TEST_F(MeshRuns, LearnWhatOneWorkerLearns) {
  const Words steps{"--steps", "20", "--batch", "22", "--launch", "threads"};
  const auto one = ended(steps + Words{"--workers", "1"});
  for (const Words& mesh : std::vector<Words>{{"--mesh", "pipe=2"},
                                              {"--mesh", "pipe=2", "--pipeline", "gpipe", "--micro-batches", "3"},
                                              {"--mesh", "pipe=2", "--pipeline", "interleaved"},
                                              {"--mesh", "pipe=3", "--pipeline", "zero-bubble", "--split", "conv2,fc3"},
                                              {"--mesh", "data=1", "--recompute", "every:2"}}) {
    expect_close(one, ended(steps + mesh), mesh[1] + (mesh.size() > 3 ? " " + mesh[3] : ""));
  }
}

TEST_F(MeshRuns, ReplicasOfPipelinesAreDataParallelism) {
  const Words steps{"--steps", "12", "--clip", "0.5", "--launch", "threads"};
  expect_close(ended(steps + Words{"--workers", "2"}), ended(steps + Words{"--mesh", "data=2,pipe=2"}),
               "data=2,pipe=2");
}

// Every kind of model, cut in every way, on 2 and 4 workers, with stages of unequal size and a batch that no number of
// micro-batches divides.
TEST_F(MeshRuns, EveryCutOfEveryKindOfModel) {
  const Words text{"--data", "synthetic:text,length=12,vocabulary=20,samples=256,test=16",
                   "--set",  "model.args.dropout=0",
                   "--set",  "model.args.width=16",
                   "--set",  "model.args.layers=2"};
  const std::vector<std::pair<std::string, Words>> models{
      {"mlp", {"--set", "model.args.width=24"}},
      {"resnet18", {"--data", "synthetic:3x16x16,classes=4,samples=256,test=16", "--set", "model.args.width=4"}},
      {"lstm-lm", text},
      {"gpt-small", text}};
  for (const auto& [model, how] : models) {
    const Words common = Words{"--model", model, "--steps", "20", "--launch", "threads", "--micro-batches", "2"} + how;
    const auto one = ended(common + Words{"--batch", "14", "--mesh", "data=1"});
    // Normalization sees micro-batches, so replicas are given theirs.
    std::vector<Words> cuts{{"--batch", "14", "--mesh", "pipe=2"},
                            {"--batch", "14", "--mesh", "data=1", "--recompute", "every:2"},
                            {"--batch", "7", "--mesh", "data=2", "--shard", "parameters", "--micro-batches", "1"}};
    if (model != "lstm-lm") {
      cuts.push_back({"--batch", "14", "--mesh", "tensor=2"});
      cuts.push_back({"--batch", "14", "--mesh", "pipe=2,tensor=2"});
    } else {
      cuts.push_back({"--batch", "14", "--mesh", "pipe=4"});
    }
    for (const auto& cut : cuts) {
      std::string what = model;
      for (const auto& word : cut) what += " " + word;
      expect_close(one, ended(common + cut), what);
    }
  }
}

TEST_F(MeshRuns, HybridsLearn) {
  const Words alexnet{"--model", "alexnet-small", "--set", "model.args.dropout=0", "--steps", "6", "--launch",
                      "threads", "--workers",     "2"};
  expect_close(ended(alexnet), ended(alexnet + Words{"--hybrid", "alexnet"}), "alexnet");
  auto done = run_well(tiny(folder.path() / "belief", {"--hybrid", "distbelief", "--epochs", "3", "--json", "--data",
                                                       "synthetic:1x16x16,classes=4,samples=512,test=128,noise=0.5"}));
  auto summary = json_lines(done.out).back();
  EXPECT_EQ(summary["workers"].size(), 4u);
  EXPECT_GT(summary["test_accuracy"].get<double>(), 0.4);
}

TEST_F(MeshRuns, ChoosesAMeshThatFits) {
  auto done = run_well(tiny(folder.path() / "auto", {"--mesh", "auto", "--workers", "2", "--steps", "4"}));
  EXPECT_THAT(done.out, HasSubstr("--mesh auto: data="));
  done = run(tiny(folder.path() / "no", {"--mesh", "auto", "--workers", "2", "--memory", "100K"}));
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("what would fit"));
}

TEST_F(MeshRuns, AStageThatDiesIsNamed) {
  Started program(tiny(folder.path() / "dies", {"--mesh", "pipe=2", "--epochs", "400", "--timeout", "5"}));
  ASSERT_TRUE(poll_until(
      20, [&] { return fs::exists(folder.path() / "dies" / "metrics.jsonl") && program.processes().size() >= 4; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  pid_t victim = -1;
  for (pid_t pid : program.processes()) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(std::string("\0RANK=1\0", 8)) != std::string::npos) victim = pid;
  }
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  EXPECT_NE(program.wait(20), 0);
  EXPECT_THAT(program.err(), HasSubstr("rank 1"));
}

TEST_F(MeshRuns, GoOnUnderAnotherMesh) {
  const auto out = folder.path() / "moved";
  const Words first{"--steps", "8", "--optimizer", "adam", "--lr", "0.002", "--schedule", "constant"};
  const auto straight = ended(first + Words{"--steps", "16", "--workers", "1"});
  run_well(tiny(out, first + Words{"--mesh", "pipe=2"}));
  run_well({"train", "--resume", out.string(), "--mesh", "pipe=3", "--steps", "12"});
  run_well({"train", "--resume", out.string(), "--mesh", "data=1", "--steps", "16"});
  expect_close(straight, values_in(out), "three meshes");
}

// Batch, rate, momentum and micro-batches are the defaults: what learns as a batch learns as a stream of micro-batches.
TEST_F(MeshRuns, PipeDreamLearnsWithItsDefaults) {
  const Words data{"--data", "synthetic:1x16x16,classes=4,samples=2048,test=512,noise=2"};
  for (const std::string model : {"mlp", "lenet"}) {
    auto learned = [&](const std::string& pipeline) {
      auto done = run_well(Words{"train", "--model", model, "--mesh", "pipe=2", "--pipeline", pipeline, "--epochs", "2",
                                 "--threads", "1", "--json", "--out", (folder.path() / model).string()} +
                           data);
      auto summary = json_lines(done.out).back();
      EXPECT_TRUE(summary["mesh"].contains("bubble"));
      return summary.value("test_accuracy", 0.0);
    };
    const double flushed = learned("1f1b");
    EXPECT_GT(flushed, 0.8) << model;
    EXPECT_GT(learned("pipedream"), flushed - 0.03) << model;
  }
}

TEST_F(MeshRuns, RefuseWhatCannotBe) {
  auto says = [&](const Words& more) {
    auto done = run(tiny(folder.path() / "no", more + Words{"--launch", "threads"}));
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
    return done.err;
  };
  EXPECT_THAT(says({"--mesh", "pipe=9"}), HasSubstr("at most pipe=5"));
  EXPECT_THAT(says({"--mesh", "pipe=2,depth=2"}), HasSubstr("data=N, pipe=N and tensor=N"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--workers", "3"}), HasSubstr("that is 2 workers, and there are 3"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--split", "fc7"}), HasSubstr("conv1, conv2, fc1, fc2, fc3"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--pipeline", "1f2b"}), HasSubstr("zero-bubble"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--strategy", "sma"}), HasSubstr("--strategy sma does not go with"));
  EXPECT_THAT(says({"--mesh", "tensor=2", "--tensor-rule", "fc9=column"}), HasSubstr("fc9"));
  EXPECT_THAT(says({"--mesh", "data=2", "--shard", "parameters", "--optimizer", "lamb"}),
              HasSubstr("sgd, adam, adamw"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--recompute", "all"}), HasSubstr("none, every:N, auto"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--pipeline", "pipedream", "--clip", "1"}), HasSubstr("goes without --clip"));
}

}  // namespace
}  // namespace trireme::test

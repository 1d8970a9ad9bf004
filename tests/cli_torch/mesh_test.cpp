// Models that are cut, from the command line: they learn what one worker learns, and go on under another mesh.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class MeshRuns : public ::testing::Test {
 protected:
  // The trained weights, one after the other.
  std::vector<float> ended(const Words& more) {
    auto out = folder.path() / ("run" + std::to_string(count_++));
    run_well(tiny(out, more));
    std::vector<float> values;
    for (const auto& [name, bytes] : weights(out)) {
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

TEST_F(MeshRuns, GoOnUnderAnotherMesh) {
  const auto out = folder.path() / "moved";
  const Words first{"--steps", "8", "--optimizer", "adam", "--lr", "0.002", "--schedule", "constant"};
  const auto straight = ended(first + Words{"--steps", "16", "--workers", "1"});
  run_well(tiny(out, first + Words{"--mesh", "pipe=2"}));
  run_well({"train", "--resume", out.string(), "--mesh", "pipe=3", "--steps", "12"});
  run_well({"train", "--resume", out.string(), "--mesh", "data=1", "--steps", "16"});
  std::vector<float> found;
  for (const auto& [name, bytes] : weights(out)) {
    std::vector<float> some(bytes.size() / 4);
    std::memcpy(some.data(), bytes.data(), some.size() * 4);
    found.insert(found.end(), some.begin(), some.end());
  }
  expect_close(straight, found, "three meshes");
}

TEST_F(MeshRuns, PipeDreamLearns) {
  auto done = run_well(tiny(folder.path() / "run", {"--mesh", "pipe=2", "--pipeline", "pipedream", "--epochs", "3",
                                                    "--micro-batches", "4", "--json", "--lr", "0.01", "--data",
                                                    "synthetic:1x16x16,classes=4,samples=512,test=128,noise=0.5"}));
  auto summary = json_lines(done.out).back();
  EXPECT_GT(summary["test_accuracy"].get<double>(), 0.3);
  EXPECT_TRUE(summary["mesh"].contains("bubble"));
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
  EXPECT_THAT(says({"--mesh", "pipe=2", "--recompute", "all"}), HasSubstr("none, every:N, auto"));
  EXPECT_THAT(says({"--mesh", "pipe=2", "--pipeline", "pipedream", "--clip", "1"}), HasSubstr("goes without --clip"));
}

}  // namespace
}  // namespace trireme::test

// A run that was stopped ends in the bits of one that was not: with every codec, strategy and mesh.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class ExactResume : public ::testing::Test {
 protected:
  static Words small(const fs::path& out, const Words& more) {
    return tiny(out, Words{"--launch", "threads", "--workers", "2", "--trace-steps", "0", "--schedule", "constant",
                           "--epochs", "9", "--data", "synthetic:1x16x16,classes=4,samples=512,test=16"} +
                         more);
  }

  // Ten steps, and again from the checkpoint of the fifth: everything that is kept at the end is the same.
  void expect_exact(const Words& how) {
    const auto out = folder.path() / ("run" + std::to_string(count_++));
    run_well(small(out, Words{"--steps", "10", "--checkpoint-every", "5", "--keep-last", "9"} + how));
    const auto straight = tensors(out / "step-00000010.safetensors");
    fs::remove(out / "best.safetensors");
    for (const auto& path : checkpoints(out)) {
      if (path.filename() != "step-00000005.safetensors") fs::remove(path);
    }
    ASSERT_EQ(checkpoints(out).size(), 1u);
    const auto done = run_well({"train", "--resume", out.string()});
    EXPECT_THAT(done.out, HasSubstr("going on from step 5"));
    EXPECT_THAT(done.out, Not(HasSubstr("begins from nothing")));
    EXPECT_THAT(differences(tensors(out / "step-00000010.safetensors"), straight), IsEmpty());
  }

  // Of all workers' tensors of that name, by element.
  static std::vector<double> sum_of(const fs::path& checkpoint, const std::string& name) {
    std::vector<double> sum;
    for (const auto& [found, bytes] : tensors(checkpoint, "worker.")) {
      if (!found.ends_with(name)) continue;
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      sum.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
    }
    return sum;
  }

  ScratchFolder folder;

 private:
  int count_ = 0;
};

// Each with a layer of its own; dgc, which has momentum inside, by itself.
TEST_F(ExactResume, EveryCodec) {
  std::string rules;
  int layer = 0;
  for (const auto& name : choices({"train", "--compress", "nonsense"})) {
    if (name != "none" && name != "dgc") rules += "layers." + std::to_string(2 * layer++) + ".weight=" + name + ",";
  }
  EXPECT_GE(layer, 12);
  expect_exact({"--model", "mlp", "--set", "model.args.width=40", "--set", "model.args.layers=" + std::to_string(layer),
                "--compress-rule", rules + "*=none"});
  expect_exact({"--compress", "dgc"});
}

// In the middle of a period, and with gradients under way.
TEST_F(ExactResume, EveryStrategyInStep) {
  for (const Words& how : std::vector<Words>{{"local-sgd:H=3", "--compress", "int8"},
                                             {"post-local-sgd:H=3,warmup=0.3", "--compress", "topk:0.05"},
                                             {"easgd:tau=3", "--compress", "powersgd"},
                                             {"diloco:H=3", "--compress", "qsgd"},
                                             {"sma:learners=2,tau=2", "--compress", "onebit"},
                                             {"gossip-sgp", "--optimizer", "adam"},
                                             {"ps-bsp", "--optimizer", "adam"},
                                             {"stale-allreduce:s=2", "--compress", "randk"}}) {
    SCOPED_TRACE(how[0]);
    expect_exact(Words{"--strategy"} + how);
  }
}

// What is kept when a run ends is its result, and beside it what going on needs.
TEST_F(ExactResume, ARunThatHadEnded) {
  const auto straight = folder.path() / "straight", out = folder.path() / "ended";
  const Words how{"--strategy", "stale-allreduce:s=2", "--compress", "topk:0.05"};
  run_well(small(straight, Words{"--steps", "10"} + how));
  run_well(small(out, Words{"--steps", "5"} + how));
  run_well({"train", "--resume", out.string(), "--steps", "10"});
  EXPECT_THAT(differences(tensors(out / "step-00000010.safetensors"), tensors(straight / "step-00000010.safetensors")),
              IsEmpty());
}

TEST_F(ExactResume, Meshes) {
  const Words four{"--workers", "4", "--mesh"};
  expect_exact(four + Words{"data=2,pipe=2", "--split", "fc1", "--strategy", "diloco:H=3", "--compress", "topk:0.05"});
  expect_exact(four + Words{"data=2,tensor=2", "--compress", "dgc"});
}

TEST_F(ExactResume, AnotherNumberOfWorkersSharesErrorsOut) {
  const auto out = folder.path() / "run";
  run_well(small(out, {"--compress", "topk:0.05", "--steps", "5"}));
  const auto path = checkpoints(out).back();
  const auto before = sum_of(path, "fc1.weight.error");
  const auto done = run_well({"train", "--resume", out.string(), "--workers", "3"});  // nothing to do but to keep it
  EXPECT_THAT(done.out, HasSubstr("3 replicas instead of 2: the errors that codecs carried are shared out equally"));
  const auto after = sum_of(path, "fc1.weight.error");
  ASSERT_EQ(before.size(), after.size());
  ASSERT_FALSE(before.empty());
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_NEAR(before[i], after[i], 1e-6);
    largest = std::max(largest, std::abs(before[i]));
  }
  EXPECT_GT(largest, 1e-3);
}

TEST_F(ExactResume, AnotherNumberOfWorkersGoesOnFromTheModel) {
  const auto out = folder.path() / "run";
  run_well(small(out, {"--strategy", "local-sgd:H=3", "--compress", "int8", "--steps", "5"}));
  const auto done = run_well({"train", "--resume", out.string(), "--workers", "3", "--steps", "7"});
  EXPECT_THAT(done.out, HasSubstr("each goes on from the model"));
  EXPECT_THAT(done.out, HasSubstr("shared out equally"));
}

}  // namespace
}  // namespace trireme::test

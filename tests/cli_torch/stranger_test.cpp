// A program of a user's own (stranger.cpp) trained by every strategy, beside `trireme train` with the same settings.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace stranger_test {

const Words kSettings{"--launch", "threads", "--workers",  "2",        "--threads", "1", "--batch",       "12",
                      "--lr",     "0.02",    "--schedule", "constant", "--epochs",  "2", "--trace-steps", "0"};

std::vector<float> in_order(const std::map<std::string, std::string>& tensors, const Words& names) {
  std::vector<float> all;
  for (const auto& name : names) {
    const auto at = tensors.find(name);
    if (at == tensors.end()) return {};
    std::vector<float> values(at->second.size() / sizeof(float));
    std::memcpy(values.data(), at->second.data(), at->second.size());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> of_stranger(const fs::path& out) {
  return in_order(weights(out), {"model.one.weight", "model.one.bias", "model.two.weight", "model.two.bias",
                                 "model.three.weight", "model.three.bias"});
}
std::vector<float> of_trireme(const fs::path& out) {
  return in_order(weights(out), {"model.layers.0.weight", "model.layers.0.bias", "model.layers.2.weight",
                                 "model.layers.2.bias", "model.layers.4.weight", "model.layers.4.bias"});
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(a.size(), b.size());
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return a.empty() ? 1 : most / largest;
}

Finished run_stranger(const Words& words) {
  Started program(words, {.program = TRIREME_STRANGER});
  const int code = program.wait(60);
  return {code, program.out(), program.err(), program.seconds()};
}

class Stranger : public ::testing::Test {
 protected:
  void train_both(const std::string& strategy) {
    fs::remove_all(folder.path() / "own");
    fs::remove_all(folder.path() / "zoo");
    const auto with = kSettings + Words{"--strategy", strategy};
    const auto own = run_stranger(
        with + Words{"--out", (folder.path() / "own").string(), "--optimizer", optimizer, "--loss", "stranger-loss"});
    EXPECT_EQ(own.code, 0) << strategy << ": " << own.err;
    run_well(Words{"train", "--model", "mlp", "--model-arg", "width=16", "--data",
                   "synthetic:1x8x8,classes=4,samples=237,test=32,noise=2", "--out", (folder.path() / "zoo").string()} +
             with);
  }
  double apart() const { return difference(of_stranger(folder.path() / "own"), of_trireme(folder.path() / "zoo")); }

  ScratchFolder folder;
  std::string optimizer = "stranger-sgd";
};

TEST_F(Stranger, IsListedWithEverythingElse) {
  const auto help = run_stranger({"--help"});
  EXPECT_THAT(help.out, HasSubstr("train"));
  const auto all = run_stranger({"train", "--help"});
  EXPECT_THAT(all.out, HasSubstr("stranger-net"));
  EXPECT_THAT(all.out, HasSubstr("lenet"));
  EXPECT_THAT(all.out, HasSubstr("stranger-loss"));
  EXPECT_THAT(all.out, HasSubstr("stranger-sgd"));
  EXPECT_THAT(run_stranger({"data", "list"}).out, HasSubstr("stranger-data"));
  EXPECT_THAT(run_stranger({"train", "--optimizer", "none-such"}).err, HasSubstr("stranger-sgd"));
}

TEST_F(Stranger, RepeatableStrategiesEndAsTheSameModelOfTheZoo) {
  for (const std::string strategy : {"allreduce", "ps-bsp", "local-sgd:H=3", "post-local-sgd", "easgd", "diloco:H=4",
                                     "sma:learners=1", "gossip-dpsgd", "gossip-sgp", "stale-allreduce"}) {
    train_both(strategy);
    EXPECT_LT(apart(), 2e-4) << strategy;
  }
}

TEST_F(Stranger, WhereAStrategySetsThePaceOfSgdItIsSgdThatEndsAlike) {
  optimizer = "sgd";
  train_both("average-at-end");
  EXPECT_LT(apart(), 2e-4);
}

TEST_F(Stranger, StrategiesAtTheirOwnPaceTrain) {
  optimizer = "sgd";
  for (const std::string strategy : {"ps-ssp", "ps-async", "hogwild", "gossip-adpsgd"}) {
    train_both(strategy);
    EXPECT_GT(json_in(folder.path() / "own" / "run.json")["summary"]["test_accuracy"].get<double>(), 0.3) << strategy;
  }
  // Servers that step cannot know an optimizer of a program's own.
  const auto refused = run_stranger(kSettings + Words{"--strategy", "ps-async", "--optimizer", "stranger-sgd"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("stranger-sgd"));
}

TEST_F(Stranger, ItsOwnLoopEndsWhereTrainDoes) {
  // Nine steps of an epoch of 237 samples by 24; the last, short one is neither's.
  for (const std::string strategy : {"allreduce", "ps-bsp", "local-sgd:H=3", "gossip-dpsgd"}) {
    const auto file = folder.path() / "weights";
    EXPECT_EQ(run_stranger({"loop", strategy, "2", "9", file.string()}).code, 0);
    fs::remove_all(folder.path() / "zoo");
    run_well(Words{"train", "--model", "mlp", "--model-arg", "width=16", "--data",
                   "synthetic:1x8x8,classes=4,samples=237,test=32,noise=2", "--out", (folder.path() / "zoo").string(),
                   "--strategy", strategy, "--steps", "9"} +
             kSettings);
    const auto bytes = contents(file);
    std::vector<float> own(bytes.size() / sizeof(float));
    std::memcpy(own.data(), bytes.data(), bytes.size());
    EXPECT_LT(difference(own, of_trireme(folder.path() / "zoo")), 2e-4) << strategy;
  }
}

TEST_F(Stranger, ItsRunsResumeAndAreEvaluated) {
  const auto out = (folder.path() / "own").string();
  EXPECT_EQ(run_stranger(kSettings + Words{"--steps", "7", "--out", out}).code, 0);
  EXPECT_EQ(run_stranger({"train", "--resume", out, "--steps", "0"}).code, 0);
  const auto judged = run_stranger({"eval", "--from", out});
  EXPECT_EQ(judged.code, 0) << judged.err;
  // As `trireme` itself does without the stranger's model: refused by name.
  const auto unknown = run(Words{"eval", "--from", out});
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("stranger-net"));
}

}  // namespace stranger_test
}  // namespace trireme::test

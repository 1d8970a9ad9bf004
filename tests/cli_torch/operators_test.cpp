// `--ops auto`, the default: what is measured once is kept, and runs stay exact.
#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class Operators : public ::testing::Test {
 protected:
  // A model whose convolutions are worth measuring, on two workers.
  Finished train(const std::string& out, const Words& more) {
    return run_well(Words{"train",
                          "--model",
                          "resnet18",
                          "--model-arg",
                          "width=32",
                          "--data",
                          synthetic,
                          "--batch",
                          "8",
                          "--steps",
                          "4",
                          "--epochs",
                          "9",
                          "--threads",
                          "1",
                          "--workers",
                          "2",
                          "--lr",
                          "0.02",
                          "--schedule",
                          "constant",
                          "--out",
                          (folder / out).string(),
                          "--trace-steps",
                          "0"} +
                        more,
                    options);
  }

  const std::string synthetic = "synthetic:3x32x32,classes=4,samples=256,test=16";
  ScratchFolder folder;
  StartOptions options{.env = {{"TRIREME_CACHE", (folder / "cache").string()}}};
};

TEST_F(Operators, AreMeasuredOnceAndRunsAreExact) {
  const auto first = train("first", {"--print-ops", "--checkpoint-every", "2"});
  EXPECT_THAT(first.err, HasSubstr("layer1.0.conv1"));
  for (const char* pass : {"forward", "data", "weights"}) EXPECT_THAT(first.err, HasSubstr(pass));
  fs::path kept;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "cache")) {
    if (entry.path().filename() == "operators.json") kept = entry.path();
  }
  ASSERT_FALSE(kept.empty());
  const auto times = contents(kept);
  EXPECT_THAT(times, HasSubstr("winograd"));
  train("second", {"--checkpoint-every", "2"});
  EXPECT_EQ(contents(kept), times);
  EXPECT_THAT(differences(weights(folder / "second"), weights(folder / "first")), IsEmpty());
  // The same in two halves.
  train("halves", {"--steps", "2", "--checkpoint-every", "2"});
  run_well({"train", "--resume", (folder / "halves").string(), "--steps", "4"}, options);
  EXPECT_THAT(differences(weights(folder / "halves"), weights(folder / "first")), IsEmpty());
}

TEST_F(Operators, WhatCannotBeKeptIsSaidInOneLine) {
  std::ofstream(folder / "file") << "x";
  options.env["TRIREME_CACHE"] = (folder / "file" / "below").string();
  const auto done = train("out", {});
  EXPECT_THAT(done.err, HasSubstr("operators.json"));
  EXPECT_THAT(done.err, HasSubstr("measured anew"));
}

TEST_F(Operators, TooLittleMemoryTakesWhatNeedsNone) {
  const auto done = train("out", {"--op-memory", "1", "--print-ops"});
  EXPECT_THAT(done.err, HasSubstr("libtorch"));
  EXPECT_THAT(done.err, Not(HasSubstr("winograd")));
  expect_refusal(run({"train", "--op-memory", "0"}, options), 2, "--op-memory");
}

TEST_F(Operators, OfOlderInstructionsTrain) {
  const auto done = train("out", {"--ops", "auto:scalar", "--steps", "1", "--model-arg", "width=8", "--print-ops"});
  EXPECT_THAT(done.err, HasSubstr("layer1.0.conv1"));
  expect_refusal(run({"train", "--ops", "auto:avx3"}, options), 2, "avx3");
  expect_refusal(run({"train", "--ops", "fast"}, options), 2, "reference");
}

TEST_F(Operators, TuneMeasuresAllOfAModel) {
  const auto done = run_well({"tune", "--ops", "--json", "--model", "resnet18", "--model-arg", "width=16", "--data",
                              synthetic, "--batch", "8", "--threads", "1"},
                             options);
  const auto lines = json_lines(done.out);
  EXPECT_GT(lines.size(), 10u);
  for (const auto& line : lines) {
    EXPECT_TRUE(line["candidates"].contains("libtorch"));
    EXPECT_TRUE(line["candidates"].contains(line["picked"].get<std::string>()));
    EXPECT_EQ(line["threads"], 1);
    EXPECT_LE(line["us"], line["candidates"]["libtorch"]);
  }
  expect_refusal(run({"tune", "--ops", "--lr", "1"}, options), 2, "--lr");
  expect_refusal(run({"tune", "--ops", "--model", "resnet19"}, options), 2, "resnet18");
}

}  // namespace
}  // namespace trireme::test

// Going on exactly where a run stopped.
#include <unistd.h>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

// 20 steps, of which only the checkpoint of step 10 is left: as if the run had been cut off soon after.
void train_and_cut(const fs::path& out, const Words& more) {
  run_well(tiny(
      out, Words{"--steps", "20", "--epochs", "9", "--checkpoint-every", "10", "--keep-last", "9", "--log-every", "1"} +
               more));
  fs::remove(out / "best.safetensors");
  for (const auto& path : checkpoints(out)) {
    if (path.filename() != "step-00000010.safetensors") fs::remove(path);
  }
  ASSERT_EQ(checkpoints(out).size(), 1u);
}

class Resume : public ::testing::TestWithParam<Words> {};

TEST_P(Resume, EndsInTheSameBits) {
  ScratchFolder folder;
  auto out = folder / "run";
  train_and_cut(out, GetParam());
  auto whole = tensors(out / "step-00000010.safetensors");
  run_well(tiny(folder / "whole", Words{"--steps", "20", "--epochs", "9"} + GetParam()));
  auto done = run_well({"train", "--resume", out.string()});
  EXPECT_THAT(done.out, HasSubstr("going on from step 10"));
  EXPECT_THAT(differences(tensors(out / "step-00000020.safetensors"), tensors(checkpoints(folder / "whole").back())),
              IsEmpty());
  EXPECT_THAT(differences(tensors(out / "step-00000020.safetensors"), whole), Not(IsEmpty()));
  // Each step once, in order.
  std::vector<std::int64_t> steps;
  for (const auto& line : json_lines(contents(out / "metrics.jsonl"))) {
    if (line.contains("loss")) steps.push_back(line["step"]);
  }
  EXPECT_EQ(steps.size(), 20u);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

// Within the first epoch, and in the second; optimizers with more state; dropout.
INSTANTIATE_TEST_SUITE_P(Each, Resume,
                         ::testing::Values(Words{"--workers", "1"}, Words{"--workers", "2"},
                                           Words{"--workers", "2", "--batch", "32"},
                                           Words{"--workers", "2", "--launch", "threads", "--optimizer", "adamw",
                                                 "--schedule", "cosine", "--model", "mlp", "--model-arg", "width=32",
                                                 "--model-arg", "dropout=0.3"}));

TEST(ResumeFrom, ABrokenCheckpointIsPassedOver) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--steps", "20", "--checkpoint-every", "10", "--workers", "2"}));
  auto whole = weights(out);
  auto newest = checkpoints(out).back();
  {
    std::fstream file(newest, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-9, std::ios::end);
    file.put('\x55');
  }
  auto done = run_well({"train", "--resume", out.string()});
  EXPECT_THAT(done.err, HasSubstr("trireme: skipped a broken checkpoint: " + newest.string()));
  EXPECT_THAT(done.out, HasSubstr("going on from step 10"));
  EXPECT_THAT(differences(weights(out), whole), IsEmpty());
}

TEST(ResumeFrom, NothingWhole) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "1"}));
  fs::remove(out / "best.safetensors");
  fs::resize_file(checkpoints(out)[0], 1000);
  expect_refusal(run({"train", "--resume", out.string()}), 7, checkpoints(out)[0].string());
}

TEST(ResumeFrom, ACheckpointOfAnotherModelIsNamed) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "2"}));
  auto before = contents(checkpoints(out)[0]);
  expect_refusal(run({"train", "--resume", out.string(), "--model", "mlp"}), 7, checkpoints(out)[0].string());
  expect_refusal(run({"train", "--resume", out.string(), "--optimizer", "adam"}), 7, "--optimizer");
  expect_refusal(run({"train", "--resume", out.string(), "--data", "synthetic:1x16x16,classes=5"}), 7, "fc3");
  EXPECT_EQ(contents(checkpoints(out)[0]), before);
}

// The same global batch, so the rest of the epoch is the same work, shared out differently.
TEST(ResumeFrom, AnotherNumberOfWorkers) {
  ScratchFolder folder;
  auto out = folder / "run";
  train_and_cut(out, {"--workers", "2", "--deterministic", "--micro-batch", "8"});
  run_well(tiny(folder / "whole", {"--steps", "20", "--epochs", "9", "--deterministic", "--micro-batch", "8",
                                   "--workers", "1", "--batch", "32"}));
  run_well({"train", "--resume", out.string(), "--workers", "4", "--batch", "8"});
  EXPECT_THAT(differences(weights(out), weights(folder / "whole")), IsEmpty());
  EXPECT_EQ(metadata(checkpoints(out).back())["position"], metadata(checkpoints(folder / "whole").back())["position"]);
}

// Another global batch: what was seen is not seen again.
TEST(ResumeFrom, AnotherBatch) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "2", "--steps", "10", "--schedule", "constant"}));
  EXPECT_EQ(metadata(checkpoints(out).back())["position"], 320);
  run_well({"train", "--resume", out.string(), "--workers", "1", "--steps", "14", "--log-every", "1"});
  auto last = metadata(checkpoints(out).back());
  EXPECT_EQ(last["step"], 14);
  EXPECT_EQ(last["position"], 384);
  run_well({"train", "--resume", out.string(), "--workers", "3", "--steps", "0"});
  EXPECT_EQ(json_in(out / "run.json")["summary"]["steps"], 17);  // 128 samples left, 48 a step
}

TEST(ResumeFrom, AFinishedRunHasNothingToDo) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "2"}));
  auto whole = weights(out);
  auto before = json_in(out / "run.json")["summary"];
  run_well({"train", "--resume", out.string()});
  auto after = json_in(out / "run.json")["summary"];
  EXPECT_EQ(after["steps"], before["steps"]);
  EXPECT_EQ(after["test_accuracy"], before["test_accuracy"]);
  EXPECT_THAT(differences(weights(out), whole), IsEmpty());
  run_well({"train", "--resume", out.string(), "--epochs", "2"});
  EXPECT_EQ(json_in(out / "run.json")["summary"]["epochs"], 2);
}

TEST(ResumeFrom, TheNewestRunWhereNoneIsNamed) {
  ScratchFolder folder;
  ASSERT_EQ(chdir(folder.path().c_str()), 0);
  expect_refusal(run({"train", "--resume"}), 2, "runs/");
  run_well(tiny("runs/a", {"--workers", "1", "--steps", "3"}));
  run_well(tiny("runs/b", {"--workers", "1", "--steps", "4"}));
  auto done = run_well({"train", "--steps", "6", "--resume"});
  EXPECT_THAT(done.out, HasSubstr("going on from step 4"));
  EXPECT_EQ(json_in("runs/b/run.json")["summary"]["steps"], 6);
}

}  // namespace
}  // namespace trireme::test

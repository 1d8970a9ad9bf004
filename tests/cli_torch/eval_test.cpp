#include "tests/cli_torch/pictures.h"

namespace trireme::test {
namespace {

TEST(Eval, SaysWhatTheRunSaid) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "2", "--epochs", "2"}));
  auto summary = json_in(out / "run.json")["summary"];
  auto done = run_well({"eval", "--from", out.string(), "--checkpoint", "last", "--json"});
  EXPECT_EQ(done.err, "");
  auto lines = json_lines(done.out);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["accuracy"], summary["test_accuracy"]);
  EXPECT_NEAR(lines[0]["loss"].get<double>(), summary["test_loss"].get<double>(), 1e-6);
  EXPECT_EQ(lines[0]["samples"], 128);
  EXPECT_EQ(lines[0]["step"], 32);
  EXPECT_EQ(lines[0]["checkpoint"], checkpoints(out).back().string());
  EXPECT_THAT(lines[0]["data"].get<std::string>(), HasSubstr("synthetic"));
  EXPECT_FALSE(lines[0].contains("perplexity"));

  auto best = json_lines(run_well({"eval", "--from", out.string(), "--json"}).out);
  EXPECT_EQ(best[0]["accuracy"], summary["best_accuracy"]);
  EXPECT_EQ(best[0]["checkpoint"], (out / "best.safetensors").string());
}

TEST(Eval, TableByClass) {
  ScratchFolder folder;
  train_on_pictures(folder / "pictures", folder / "run");
  auto done = run_well({"eval", "--from", (folder / "run").string()});
  EXPECT_THAT(done.out, HasSubstr("accuracy    100.00%"));
  EXPECT_THAT(done.out, ::testing::ContainsRegex("dark +[0-9]+ +100.00%"));
  EXPECT_THAT(done.out, ::testing::ContainsRegex("light +[0-9]+ +100.00%"));
}

// Other pictures, whose own mean is another: they are seen as the model learned to see.
TEST(Eval, OtherDataWithTheRunsNormalization) {
  ScratchFolder folder;
  train_on_pictures(folder / "pictures", folder / "run");
  for (int k = 0; k < 20; ++k) {
    auto number = static_cast<unsigned>(k);
    write_png(folder / "other" / "dark" / fmt::format("{}.png", k), 12, 12, grey_pixels(144, 20, number));
    write_png(folder / "other" / "light" / fmt::format("{}.png", k), 12, 12, grey_pixels(144, 230, number));
    write_png(folder / "bright" / "dark" / fmt::format("{}.png", k), 12, 12, grey_pixels(144, 180, number));
    write_png(folder / "bright" / "light" / fmt::format("{}.png", k), 12, 12, grey_pixels(144, 230, number));
  }
  auto eval = [&](const char* data) {
    return json_lines(
        run_well({"eval", "--from", (folder / "run").string(), "--json", "--data", (folder / data).string()}).out)[0];
  };
  EXPECT_EQ(eval("other")["accuracy"], 1.0);
  EXPECT_LT(eval("bright")["accuracy"].get<double>(), 0.9);  // by its own mean half of it would look dark
}

TEST(Eval, Text) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well({"train", "--data", "synthetic:text,vocabulary=16,samples=64,test=16,length=8", "--model", "lstm-lm",
            "--threads", "1", "--model-arg", "width=16", "--workers", "1", "--launch", "threads", "--out",
            out.string()});
  auto line = json_lines(run_well({"eval", "--from", out.string(), "--json"}).out)[0];
  EXPECT_NEAR(line["perplexity"].get<double>(), std::exp(line["loss"].get<double>()), 1e-5);
  EXPECT_EQ(line["samples"], 16);
  EXPECT_THAT(run_well({"eval", "--from", out.string()}).out, HasSubstr("perplexity"));
}

TEST(Eval, Refuses) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "1", "--launch", "threads"}));
  auto eval = [&](const Words& more) { return run(Words{"eval", "--from", out.string(), "--json"} + more); };
  expect_refusal(eval({"--data", "synthetic:1x16x16,classes=5,samples=9"}), 2, "classes");
  expect_refusal(eval({"--data", "synthetic:3x16x16,classes=4,samples=9"}), 2, "3x16x16");
  expect_refusal(eval({"--data", "/nowhere/x.csv"}), 7, "/nowhere/x.csv");
  expect_refusal(eval({"--checkpoint", "first"}), 2, "--checkpoint");
  expect_refusal(run({"eval", "--from", (folder / "none").string()}), 7, "none");
  expect_refusal(run({"eval"}), 2, "--from");
}

TEST(Eval, ABrokenBestIsPassedOver) {
  ScratchFolder folder;
  auto out = folder / "run";
  run_well(tiny(out, {"--workers", "1", "--launch", "threads", "--epochs", "2"}));
  auto kept = folder / "kept.safetensors";
  fs::copy_file(checkpoints(out).back(), kept);
  auto last = checkpoints(out).back();
  fs::remove(out / "best.safetensors");
  std::ofstream(out / "best.safetensors") << "not a checkpoint";
  auto done = run_well({"eval", "--from", out.string(), "--json"});
  EXPECT_THAT(done.err, HasSubstr("best.safetensors"));
  EXPECT_EQ(json_lines(done.out)[0]["checkpoint"], last.string());
  // A checkpoint by its own name.
  EXPECT_EQ(json_lines(run_well({"eval", "--from", kept.string(), "--json"}).out)[0]["checkpoint"], kept.string());
}

}  // namespace
}  // namespace trireme::test

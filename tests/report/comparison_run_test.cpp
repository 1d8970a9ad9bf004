// Whole comparisons, with a program that only pretends to train.
#include "trireme/report/compare/comparison_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

// A program that takes `train …` and pretends.
class ComparisonRun : public testing::Test {
 protected:
  // `script` runs with $out, $batch and $seed set; $log is a file of all calls.
  void write_program(const std::string& script) {
    put(program_,
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case \"$1\" in --out) out=$2;; train.batch=*) batch=${1#*=};; "
        "train.seed=*) seed=${1#*=};; esac; shift; done\nlog='" +
            (folder_ / "log").string() + "'\necho \"$batch $seed\" >> \"$log\"\n" + script + "\n");
    ::chmod(program_.c_str(), 0755);
  }
  Comparison plan(std::vector<std::string> values = {"32", "64"}, std::int64_t seeds = 2) {
    values.insert(values.begin(), "batch");
    return plan_comparison({}, {values}, seeds);
  }
  ComparisonPlace place() { return {program_.string(), folder_ / "cmp"}; }
  std::string log() { return content(folder_ / "log"); }

  static constexpr const char* kTrain =
      "mkdir -p \"$out\"; echo '{\"step\":5,\"loss\":1}' > \"$out/metrics.jsonl\"\n"
      "echo '{\"step\":9,\"epoch\":1,\"test_accuracy\":0.8,\"train_seconds\":3}' >> \"$out/metrics.jsonl\"\n"
      "echo noise; echo \"{\\\"test_accuracy\\\":0.$batch,\\\"train_seconds\\\":4,\\\"steps\\\":$seed}\"";

  ScratchFolder folder_;
  std::filesystem::path program_ = folder_ / "fake";
};

TEST_F(ComparisonRun, RunsEachVariantWithEachSeedInterleaved) {
  write_program(kTrain);
  auto comparison = plan();
  EXPECT_EQ(run_comparison(comparison, place()), 4);
  EXPECT_EQ(log(), "32 1\n64 1\n32 2\n64 2\n");
  const auto* run = comparison.find(1, 2);
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->finished());
  EXPECT_EQ(run->test_metric, 0.64);
  EXPECT_EQ(run->steps, 2);
  ASSERT_EQ(run->curve.size(), 1u);
  EXPECT_EQ(run->curve[0].train_seconds, 3);
  EXPECT_EQ(run->out, (folder_ / "cmp/batch=64/seed-2").string());
  const auto kept = nlohmann::json::parse(content(folder_ / "cmp/compare.json"));
  EXPECT_EQ(kept["runs"].size(), 4u);
  EXPECT_THAT(content(folder_ / "cmp/compare.csv"), HasSubstr("\n64,2,finished,0.64,"));
  EXPECT_THAT(content(folder_ / "cmp/compare.html"), HasSubstr("<!DOCTYPE html>"));
}

TEST_F(ComparisonRun, DoesNotRepeatWhatHasFinished) {
  write_program(std::string("[ $batch$seed = 321 ] || exit 3\n") + kTrain);
  auto first = plan();
  EXPECT_EQ(run_comparison(first, place()), 4);
  put(folder_ / "log", "");
  write_program(kTrain);
  auto second = plan({"32", "64", "96"});
  EXPECT_EQ(run_comparison(second, place()), 5);
  EXPECT_EQ(log(), "64 1\n96 1\n32 2\n64 2\n96 2\n");
  auto third = plan({"32", "64", "96"});
  EXPECT_EQ(run_comparison(third, place()), 0);
  EXPECT_EQ(third.runs.size(), 6u);
  EXPECT_EQ(third.find(0, 1)->test_metric, 0.32);
}

TEST_F(ComparisonRun, AFailedRunDoesNotStopTheOthers) {
  write_program(std::string("if [ $batch = 32 ]; then echo first >&2; echo 'trireme: data: not there' >&2; exit 7; fi\n"
                            "if [ $seed = 2 ]; then kill -KILL $$; fi\n") +
                kTrain);
  auto comparison = plan();
  std::string said;
  ComparisonWatch watch;
  watch.child.says = [&](std::string_view bytes) { said += bytes; };
  EXPECT_EQ(run_comparison(comparison, place(), watch), 4);
  EXPECT_EQ(comparison.find(0, 1)->status, "failed");
  EXPECT_EQ(comparison.find(0, 1)->error, "data: not there");
  EXPECT_EQ(comparison.find(1, 1)->status, "finished");
  EXPECT_EQ(comparison.find(1, 2)->error, "killed by signal 9");
  EXPECT_THAT(said, HasSubstr("first\ntrireme: data: not there\n"));
}

TEST_F(ComparisonRun, ARunWithoutSummaryFailed) {
  write_program("echo '[1]'");
  auto comparison = plan({"32"}, 1);
  run_comparison(comparison, place());
  EXPECT_EQ(comparison.find(0, 1)->error, "printed no summary");
}

TEST_F(ComparisonRun, ASignalEndsTheRunAtHandAndAll) {
  write_program(
      "trap 'echo \"{}\"; exit 130' INT\n[ $seed = 2 ] && { touch \"$log.waits\"; while :; do sleep 0.02; done; }\n" +
      std::string(kTrain));
  auto comparison = plan();
  StopRequest stop;
  auto where = place();
  where.stop = &stop;
  ComparisonWatch watch;
  watch.child.goes_on = [&](double) {
    if (!stop.asked() && std::filesystem::exists(folder_ / "log.waits")) stop.note(SIGINT);
  };
  EXPECT_EQ(run_comparison(comparison, where, watch), 3);
  EXPECT_EQ(comparison.find(0, 2)->status, "stopped");
  EXPECT_EQ(comparison.find(1, 2), nullptr);
  const auto kept = nlohmann::json::parse(content(folder_ / "cmp/compare.json"));
  EXPECT_EQ(kept["variants"][0]["finished"], 1);
  // It goes on from there.
  write_program(kTrain);
  auto again = plan();
  EXPECT_EQ(run_comparison(again, place()), 2);
}

TEST_F(ComparisonRun, AMissingProgramIsAnError) {
  auto comparison = plan();
  EXPECT_THAT(message_of<Error>([&] { run_comparison(comparison, place()); }), HasSubstr("cannot run"));
}

TEST_F(ComparisonRun, EverySettingIsPassedOn) {
  Config config;
  config.model_args["width"] = "3";
  config.lr = 0.1 + 0.2;
  config.augment = true;
  config.out = "o";
  auto words = train_command("p", config);
  Config read;
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] != "--set") continue;
    auto equals = words[i + 1].find('=');
    set(read, words[i + 1].substr(0, equals), words[i + 1].substr(equals + 1));
  }
  read.out = words.back();
  EXPECT_EQ(read, config);
}

}  // namespace
}  // namespace trireme::train

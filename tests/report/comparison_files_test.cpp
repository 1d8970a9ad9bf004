// Comparisons as files: CSV, and JSON that comes back as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/report/comparison_samples.h"
#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"
#include "trireme/report/compare/comparison_run.h"
#include "trireme/report/compare/comparison_summary.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ComparisonFiles, CsvHasARowForEachRun) {
  auto comparison = plan_comparison({}, {{"model-arg.a\"b", "x,y"}, {"batch", "32"}}, 1);
  auto run = finished(0, 1, 0.5, 0.75);
  run.out = "a \"folder\"";
  run.error = "line\nfeed";
  comparison.put(run);
  EXPECT_EQ(comparison_csv(comparison),
            "\"model-arg.a\"\"b\",batch,seed,status,test_accuracy,best_accuracy,train_accuracy,target_accuracy,"
            "target_seconds,train_seconds,steps,epochs,samples_per_s,forward_ms,backward_ms,exposed_ms,optimizer_ms,"
            "other_ms,step_ms,communication_ms,overlap,bytes_sent,wait_s,compute_s,"
            "staleness_mean,staleness_max,consensus,target_bytes,target_steps,straggler,out,error\n"
            "\"x,y\",32,1,finished,0.75,0.75,0.76,0.75,20,20,100,2,1010,1,2,0.5,0.25,0.25,4,1,0.5,,,,,,,,100,,"
            "\"a \"\"folder\"\"\",\"line\nfeed\"\n");
}

TEST(ComparisonFiles, JsonComesBackAsItWas) {
  auto comparison = made_up();
  auto text = to_json(comparison).dump();
  auto again = plan_comparison({}, {{"batch", "64", "128"}}, 3);
  take_over(again, nlohmann::json::parse(text), "f");
  EXPECT_THAT(labels(again), ElementsAre("batch=64", "batch=128", "batch=32"));
  EXPECT_EQ(again.planned, 2u);
  EXPECT_EQ(again.runs.size(), 6u);
  const auto* run = again.find(2, 2);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->test_metric, 0.9);
  EXPECT_EQ(run->curve[1].train_metric, 0.91);
  EXPECT_EQ(run->step.exposed, 0.5);
  EXPECT_EQ(again.find(1, 1), nullptr);
}

TEST(ComparisonFiles, JsonKeepsWhatSynchronizingCosts) {
  auto comparison = costly();
  auto json = nlohmann::json::parse(to_json(comparison).dump());
  const auto& variant = json["variants"][1];
  EXPECT_EQ(variant["bytes_sent"]["mean"], 3e6);
  EXPECT_EQ(variant["target_bytes"]["mean"], 3e6);
  EXPECT_EQ(variant["wait_s"]["mean"], 5);
  EXPECT_EQ(variant["compute_s"]["mean"], 15);
  EXPECT_EQ(variant["staleness_mean"]["mean"], 1.25);
  EXPECT_EQ(variant["staleness_max"]["mean"], 3);
  EXPECT_EQ(variant["consensus"]["count"], 0);
  auto again = plan_comparison({}, {{"strategy", "allreduce", "ps-ssp:s=3"}}, 1);
  take_over(again, json, "f");
  EXPECT_EQ(to_json(again).dump(), to_json(comparison).dump());
}

TEST(ComparisonFiles, TakesOverWhatDidNotKnowOfCosts) {
  auto json = nlohmann::json::parse(to_json(costly()).dump());
  json.erase("theory");
  for (auto key : {"workers", "worker_steps", "bytes_sent", "compute_s", "wait_s", "wait_share", "staleness_mean",
                   "staleness_max", "consensus", "straggler", "target_bytes", "target_steps"}) {
    for (auto* list : {&json["runs"], &json["variants"]}) {
      for (auto& one : *list) one.erase(key);
    }
  }
  for (auto& run : json["runs"]) {
    for (auto& point : run["curve"]) point.erase("bytes_sent"), point.erase("train_loss"), point.erase("consensus");
  }
  auto again = plan_comparison({}, {{"strategy", "allreduce", "ps-ssp:s=3"}}, 1);
  take_over(again, json, "f");
  EXPECT_EQ(again.runs.size(), 2u);
  EXPECT_TRUE(std::isnan(again.runs[0].bytes_sent));
  EXPECT_THAT(comparison_table(again, {.width = 160}), Not(HasSubstr("sent")));
  EXPECT_THAT(comparison_page(again), HasSubstr("\"curve\""));
}

TEST(ComparisonFiles, ReadsTheWorkersOfARun) {
  ScratchFolder folder;
  auto summary = nlohmann::json::parse(R"({"steps": 30, "status": "finished", "consensus": 0.5, "straggler": 1,
      "workers": [{"rank": 0, "steps": 30, "compute_s": 1, "wait_s": 3, "bytes_sent": 100,
                   "staleness": {"mean": 1, "max": 2, "histogram": {"0": 10, "1": 10, "2": 10}}},
                  {"rank": 1, "steps": 10, "compute_s": 3, "wait_s": 1, "bytes_sent": 300,
                   "staleness": {"mean": 3, "max": 5, "histogram": {"1": 5, "5": 5}}}]})");
  std::ofstream(folder / "metrics.jsonl") << R"({"step": 15, "epoch": 0, "test_accuracy": 0.5, "bytes_sent": 50}
{"step": 20, "loss": 1}
{"step": 30, "epoch": 1, "test_accuracy": 0.6, "bytes_sent": 100, "train_loss": 2, "consensus": 0.25}
)";
  auto run = read_run(summary, folder / "metrics.jsonl");
  EXPECT_EQ(run.workers, 2);
  EXPECT_EQ(run.worker_steps, 20);
  EXPECT_EQ(run.bytes_sent, 200);
  EXPECT_EQ(run.compute_s, 2);
  EXPECT_EQ(run.wait_s, 2);
  EXPECT_EQ(run.staleness_mean, 1.5);  // 60 over 40 steps
  EXPECT_EQ(run.staleness_max, 5);
  EXPECT_EQ(run.consensus, 0.5);
  EXPECT_EQ(run.straggler, 1);
  ASSERT_EQ(run.curve.size(), 2u);
  EXPECT_EQ(run.curve[0].epoch, 0.5);       // the first of two tests in an epoch
  EXPECT_EQ(run.curve[0].bytes_sent, 100);  // the first worker sends half of the mean
  EXPECT_EQ(run.curve[1].train_loss, 2);
  EXPECT_EQ(run.curve[1].consensus, 0.25);
  EXPECT_EQ(steps_to(run, 0.55), 20);  // of a worker
  summary["workers"] = {1, "two"};
  EXPECT_TRUE(std::isnan(read_run(summary, folder / "nothing").bytes_sent));
}

TEST(ComparisonFiles, CurvesAreAFileOfTheirOwn) {
  auto comparison = costly();
  EXPECT_THAT(comparison_curves_csv(comparison),
              testing::StartsWith("strategy,seed,epoch,step,train_seconds,bytes_sent,test_accuracy,test_loss,"
                                  "train_accuracy,train_loss,consensus\n"
                                  "allreduce,1,1,50,10,12000000,0.7,0.5,0.7,,\n"));
}

TEST(ComparisonFiles, TakesOverOnlyTheSameComparison) {
  auto before = nlohmann::json::parse(to_json(made_up()).dump());
  auto refusal = [&](Config config, std::vector<std::string> vary, const nlohmann::json& json) {
    auto comparison = plan_comparison(config, {vary}, 1);
    return message_of<Error>([&] { take_over(comparison, json, "F"); });
  };
  EXPECT_EQ(refusal({}, {"batch", "1"}, before), "");
  EXPECT_EQ(refusal({.batch = 7, .seed = 5, .out = "x"}, {"batch", "1"}, before), "");
  EXPECT_THAT(refusal({.epochs = 9}, {"batch", "1"}, before), HasSubstr("F: was made with --epochs 4, now 9"));
  EXPECT_THAT(refusal({.model_args = {{"a", "1"}}}, {"batch", "1"}, before), HasSubstr("--model-arg"));
  EXPECT_THAT(refusal({}, {"lr", "1"}, before), HasSubstr("F: compares train.batch, not train.lr"));
  EXPECT_THAT(refusal({}, {"batch", "1"}, {{"a", 1}}), HasSubstr("F: no comparison"));
  auto damaged = before;
  damaged["runs"][0].erase("seed");
  EXPECT_THAT(refusal({}, {"batch", "1"}, damaged), HasSubstr("F: damaged"));
  damaged = before;
  damaged["runs"][0]["variant"] = "batch=1000";
  EXPECT_THAT(refusal({}, {"batch", "1"}, damaged), HasSubstr("F: a run of no variant"));
}

}  // namespace
}  // namespace trireme::train

// `trireme compare` as its users call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/outcome.h"
#include "tests/train/scratch_folder.h"

namespace trireme::train {
namespace {

using test::refuses;
using test::run_trireme;
using testing::HasSubstr;

const std::string kSmall =
    " --data synthetic:1x8x8,classes=2,samples=64 --model mlp --workers 1 --launch threads --threads 1 --epochs 1 ";

TEST(CompareCommand, RefusesWhatCannotBeBeforeTheFirstRun) {
  ScratchFolder folder;
  auto out = " --out " + (folder / "cmp").string();
  EXPECT_TRUE(refuses("compare --vary optimizer sgd nothing" + kSmall + out));
  auto model = run_trireme("compare --vary model mlp nothing" + kSmall + out + " 2>&1");
  EXPECT_EQ(model.code, 2);
  EXPECT_THAT(model.text, HasSubstr("variant model=nothing: "));
  EXPECT_FALSE(std::filesystem::exists(folder / "cmp"));
}

TEST(CompareCommand, TrainsEachVariantOnceAndWritesAll) {
  ScratchFolder folder;
  auto command = "compare --vary batch 16 32" + kSmall + "--out " + (folder / "cmp").string();
  auto first = run_trireme(command + " 2>&1");
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("1/2 batch=16 seed=1  "));
  EXPECT_THAT(first.text, HasSubstr("2/2 batch=32 seed=1  "));
  EXPECT_THAT(first.text, HasSubstr("One seed each"));
  for (auto file : {"compare.html", "compare.csv", "compare.json", "batch=16/seed-1/run.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / ("cmp/" + std::string(file)))) << file;
  }
  auto second = run_trireme(command + " --json 2>&1");
  EXPECT_EQ(second.code, 0) << second.text;
  auto json = nlohmann::json::parse(second.text);  // no run said anything
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][0]["steps"], 4);
  EXPECT_EQ(json["runs"][1]["steps"], 2);
  EXPECT_EQ(json["runs"][1]["curve"].size(), 1u);
  auto other = run_trireme(command + " --epochs 2 2>&1");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.text, HasSubstr("--epochs 1, now 2"));
}

TEST(CompareCommand, ComparesByTheFirstMetric) {
  ScratchFolder folder;
  const auto numbers = kSmall + "--model mlp --data synthetic:1x8x8,values=2,samples=64,test=16 --lr 0.01 ";
  auto command = "compare --vary batch 16 32" + numbers + "--loss mse --out " + (folder / "cmp").string();
  auto first = run_trireme(command + " 2>&1");
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("test mse"));
  auto json = nlohmann::json::parse(run_trireme(command + " --json 2>&1").text);
  EXPECT_EQ(json["metric"]["key"], "mse");
  EXPECT_GT(json["variants"][0]["test_mse"]["mean"].get<double>(), 0);
  EXPECT_GT(json["runs"][1]["curve"][0]["train_mse"].get<double>(), 0);
  auto losses = "compare --vary loss mse mae" + numbers + "--out " + (folder / "losses").string();
  EXPECT_THAT(run_trireme(losses + " 2>&1").text, HasSubstr("judged by mse and mae"));
  EXPECT_EQ(run_trireme(losses + " --metric r2 2>&1").code, 0);
}

TEST(CompareCommand, ComparesWaysToSynchronize) {
  ScratchFolder folder;
  auto command = "compare --vary strategy allreduce local-sgd:H=2" + kSmall +
                 "--workers 2 --batch 8 --evals-per-epoch 4 --target-accuracy 0.01 --out " + (folder / "cmp").string();
  auto first = run_trireme(command + " 2>&1");
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("theory: "));
  auto second = run_trireme(command + " --json 2>&1");
  auto json = nlohmann::json::parse(second.text);
  EXPECT_EQ(json["target"], 0.01);
  double sent[2];
  for (int v : {0, 1}) {
    sent[v] = json["variants"][v]["bytes_sent"]["mean"];
    EXPECT_EQ(json["runs"][v]["workers"], 2);
    EXPECT_EQ(json["runs"][v]["curve"][0]["epoch"], 0.25);
    EXPECT_LE(json["variants"][v]["target_bytes"]["mean"], sent[v]);
    EXPECT_EQ(json["theory"]["rates"][v]["workers"], 2);
  }
  EXPECT_GT(sent[0], sent[1]);
  EXPECT_TRUE(std::filesystem::exists(folder / "cmp/compare-curves.csv"));
}

}  // namespace
}  // namespace trireme::train

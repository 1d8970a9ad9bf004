// Comparisons: which variants there are, and what is said of made-up results.
#include "trireme/report/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/report/comparison_samples.h"
#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"
#include "trireme/cluster/profile/profile_json.h"
#include "trireme/report/compare/comparison_summary.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The same numbers as errors to make small.
TEST(Comparison, WhereLowerIsBetter) {
  auto comparison = made_up();
  comparison.by = compared_by("mse");
  for (auto& run : comparison.runs) run.higher_is_better = comparison.by.higher_is_better;
  EXPECT_DOUBLE_EQ(target_of(comparison), 0.9);  // the worst mean
  const std::vector<VariantSummary> summaries{summarize(comparison, 0, 0.79), summarize(comparison, 1, 0.79)};
  // By seed 0.79, 0.80 and 0.81 after ten seconds, then 0.89 and more; and 0.68, 0.70, 0.72.
  EXPECT_EQ(summaries[0].to_target.count, 1);
  EXPECT_EQ(summaries[1].to_target.count, 3);
  const auto first = measures(comparison.by).front();
  EXPECT_EQ(first.key, "test_mse");
  EXPECT_EQ(first.title, "test mse");
  EXPECT_THAT(standings(summaries, first), ElementsAre(Standing::kWorse, Standing::kBest));
  const auto table = comparison_table(comparison, {.width = 200});
  EXPECT_THAT(table, HasSubstr("test mse"));
  EXPECT_THAT(table, HasSubstr("to 0.9 "));
  EXPECT_THAT(table, HasSubstr("the highest mean test mse"));
  EXPECT_THAT(table, Not(HasSubstr("acc")));
  EXPECT_THAT(comparison_csv(comparison), HasSubstr(",test_mse,best_mse,train_mse,target_mse,"));
  const auto json = to_json(comparison);
  EXPECT_EQ(json["metric"]["key"], "mse");
  EXPECT_DOUBLE_EQ(json["variants"][1]["test_mse"]["mean"].get<double>(), 0.8);
  EXPECT_EQ(json["runs"][0]["curve"][1]["test_mse"], 0.89);
  // And back.
  auto again = plan_comparison({}, {{"batch", "32", "64"}}, 3);
  again.by = comparison.by;
  take_over(again, nlohmann::json::parse(json.dump()), "compare.json");
  EXPECT_EQ(again.find(0, 1)->test_metric, 0.89);
  EXPECT_FALSE(again.find(0, 1)->higher_is_better);
}

TEST(Comparison, IsTheCrossProductInTheOrderGiven) {
  auto comparison = plan_comparison({}, {{"batch", "32", "128"}, {"run.workers", "1", "2"}}, 2);
  EXPECT_THAT(labels(comparison),
              ElementsAre("batch=32 workers=1", "batch=32 workers=2", "batch=128 workers=1", "batch=128 workers=2"));
  EXPECT_EQ(comparison.variants[1].folder, "batch=32,workers=2");
  auto config = comparison.config_of(3, 9);
  EXPECT_EQ(config.batch, 128);
  EXPECT_EQ(config.workers, 2);
  EXPECT_EQ(config.seed, 9);
}

TEST(Comparison, TakesAnySettingByFlagKeyOrModelArgument) {
  for (const auto& field : fields()) {
    if (field.key == "out.dir" || field.key == "train.target" || field.key == "train.seed") continue;
    for (auto name : {std::string(field.key), std::string(field.flag.substr(2))}) {
      auto comparison = plan_comparison({}, {{name, value_text(Config{}, field)}}, 1);
      EXPECT_EQ(comparison.varied[0].key, field.key);
    }
  }
  EXPECT_EQ(plan_comparison({}, {{"micro_batch", "32"}}, 1).varied[0].name, "micro-batch");
  for (auto name : {"model-arg.width", "model.args.width"}) {
    auto comparison = plan_comparison({}, {{name, "10", "20"}}, 1);
    EXPECT_EQ(comparison.variants[1].label, "model-arg.width=20");
    EXPECT_EQ(comparison.config_of(1, 1).model_args.at("width"), "20");
  }
}

TEST(Comparison, RefusesWhatCannotBeNamingIt) {
  auto refusal = [](std::vector<std::vector<std::string>> vary, std::int64_t seeds = 1) {
    return message_of<ConfigError>([&] { plan_comparison({}, vary, seeds); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("--vary"));
  EXPECT_THAT(refusal({{"batch"}}), HasSubstr("--vary batch"));
  EXPECT_THAT(refusal({{"bach", "32"}}), HasSubstr("train.batch"));
  EXPECT_THAT(refusal({{"batch", "32", "0"}}), HasSubstr("variant batch=0: --batch"));
  EXPECT_THAT(refusal({{"batch", "32", "many"}}), HasSubstr("variant batch=many: "));
  EXPECT_THAT(refusal({{"batch", "32", "48"}, {"micro-batch", "32"}}), HasSubstr("variant batch=48 micro-batch=32: "));
  EXPECT_THAT(refusal({{"lr", "0.1", "1e-1"}}), HasSubstr("twice"));
  EXPECT_THAT(refusal({{"lr", "0.1"}, {"train.lr", "0.2"}}), HasSubstr("twice"));
  EXPECT_THAT(refusal({{"seed", "1", "2"}}), HasSubstr("--seeds"));
  EXPECT_THAT(refusal({{"out", "a", "b"}}), HasSubstr("--out"));
  EXPECT_THAT(refusal({{"batch", "32"}}, 0), HasSubstr("--seeds"));
  EXPECT_THAT(refusal({{"batch", "32"}}, 1'000'000), HasSubstr("runs"));
  auto further = [](const Config& config) {
    if (config.optimizer == "none") throw DataError("no such thing");
  };
  EXPECT_EQ(message_of<DataError>([&] {
              plan_comparison({}, {{"optimizer", "sgd", "none"}}, 1, further);
            }),
            "variant optimizer=none: no such thing");
}

TEST(Comparison, FoldersAreSafeAndDistinct) {
  auto comparison =
      plan_comparison({}, {{"model-arg.x", "a/b", "a b", "a:b", "../..", "a,b", std::string(300, 'a')}}, 1);
  std::set<std::string> folders;
  for (const auto& variant : comparison.variants) {
    EXPECT_EQ(variant.folder.find_first_of("/ :<>|"), std::string::npos) << variant.folder;
    EXPECT_LT(variant.folder.size(), 120u);
    folders.insert(variant.folder);
  }
  EXPECT_EQ(folders.size(), comparison.variants.size());
}

TEST(Comparison, SpreadsAreThoseOfTheTextbook) {
  auto spread = spread_of({2, 4, 4, 4, 5, 5, 7, 9, kUnknown});
  EXPECT_EQ(spread.count, 8);
  EXPECT_DOUBLE_EQ(spread.mean, 5);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt(32.0 / 7));
  EXPECT_EQ(spread.low, 2);
  EXPECT_EQ(spread.high, 9);
  EXPECT_EQ(spread_of({kUnknown}).count, 0);
  EXPECT_TRUE(std::isnan(spread_of({1}).deviation));
}

TEST(Comparison, TellsApartOnlyWhatTheSpreadAllows) {
  auto spread = [](std::vector<double> values) { return spread_of(values); };
  EXPECT_TRUE(told_apart(spread({1, 2, 3}), spread({4, 5, 6})));   // 3 apart, √2 of spread
  EXPECT_FALSE(told_apart(spread({1, 2, 3}), spread({2, 3, 4})));  // 1 apart
  EXPECT_TRUE(told_apart(spread({1, 2}), spread({3, 4})));         // ranges apart
  EXPECT_FALSE(told_apart(spread({1, 3}), spread({2, 4, 5})));     // ranges touch
  EXPECT_FALSE(told_apart(spread({1}), spread({100, 101, 102})));  // no spread known
}

TEST(Comparison, TargetIsTheLowestMeanUnlessGiven) {
  auto comparison = made_up();
  EXPECT_DOUBLE_EQ(target_of(comparison), 0.8);
  // 0.79 and 0.8, 0.81 after the first epoch of batch 32; of batch 64 two seeds get there, after the second.
  auto fast = summarize(comparison, 0, 0.8).to_target, slow = summarize(comparison, 1, 0.8).to_target;
  EXPECT_EQ(fast.count, 3);
  EXPECT_DOUBLE_EQ(fast.mean, (20 + 10 + 10) / 3.0);
  EXPECT_EQ(slow.count, 2);
  EXPECT_DOUBLE_EQ(slow.mean, 20);
  comparison.target = 0.95;
  EXPECT_EQ(target_of(comparison), 0.95);
  EXPECT_EQ(summarize(comparison, 0, 0.95).to_target.count, 0);
}

TEST(Comparison, TableHasMeansSpreadsAndMarks) {
  auto comparison = made_up();
  Screen screen{.unicode = true, .width = 120};
  auto table = comparison_table(comparison, screen);
  EXPECT_THAT(table, HasSubstr("90.00 ± 1.00%*"));
  EXPECT_THAT(table, HasSubstr("80.00 ± 2.00%"));
  EXPECT_THAT(table, HasSubstr("to 80.00%"));
  EXPECT_THAT(table, HasSubstr("13.3 ± 5.8 s"));
  EXPECT_THAT(table, HasSubstr("20.0 s [2/3]"));
  EXPECT_THAT(table, HasSubstr("1,020 ± 10"));
  EXPECT_THAT(table, HasSubstr("1,020 ± 10≈"));  // both are as fast
  EXPECT_THAT(table, HasSubstr("standard deviation"));
  screen.unicode = false;
  EXPECT_THAT(comparison_table(comparison, screen), HasSubstr("90.00 +- 1.00%*"));
}

TEST(Comparison, TableFitsTheScreen) {
  for (int width : {40, 60, 80, 100, 200}) {
    auto table = comparison_table(made_up(), {.unicode = true, .width = width});
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      int columns = 0;
      for (unsigned char byte : line) columns += byte >> 6 != 2;
      EXPECT_LE(columns, width) << line;
    }
    EXPECT_EQ(table.find("Not shown") != table.npos, width < 120) << table;
  }
}

TEST(Comparison, FewSeedsAreSaidToBeFew) {
  auto one = plan_comparison({}, {{"batch", "32", "64"}}, 1);
  one.put(finished(0, 1, 0.7, 0.9));
  one.put(finished(1, 1, 0.7, 0.8));
  auto table = comparison_table(one, {.unicode = true, .width = 120});
  EXPECT_THAT(table, HasSubstr("One seed each"));
  EXPECT_THAT(table, Not(HasSubstr("*")));
  one.put(finished(0, 2, 0.7, 0.88));
  one.put(finished(1, 2, 0.7, 0.89));
  table = comparison_table(one, {.unicode = true, .width = 120});
  EXPECT_THAT(table, HasSubstr("89.00% (88.00..90.00)*"));
  EXPECT_THAT(table, HasSubstr("84.50% (80.00..89.00)≈"));
  EXPECT_THAT(table, HasSubstr("lowest..highest"));
}

TEST(Comparison, FailedRunsAreShownAndNotCounted) {
  auto comparison = made_up();
  ComparedRun failed;
  failed.variant = 1;
  failed.seed = 3;
  failed.status = "failed";
  failed.error = "no space";
  comparison.put(failed);
  EXPECT_EQ(comparison.runs.size(), 6u);
  auto summary = summarize(comparison, 1, 0);
  EXPECT_EQ(summary.finished, 2);
  EXPECT_EQ(summary.unfinished, 1);
  EXPECT_DOUBLE_EQ(summary.test_metric.mean, 0.79);
  EXPECT_THAT(comparison_table(comparison, {.width = 120}), HasSubstr("batch=64 seed=3  failed: no space\n"));
}

TEST(Comparison, TableHasWhatSynchronizingCosts) {
  auto comparison = costly();
  comparison.target = 0.7;
  auto table = comparison_table(comparison, {.unicode = true, .width = 160});
  EXPECT_THAT(table, HasSubstr("sent to 70.00%"));
  EXPECT_THAT(table, HasSubstr("12.0 MB"));
  EXPECT_THAT(table, HasSubstr("24.0 MB"));
  EXPECT_THAT(table, HasSubstr("1.50 MB"));
  EXPECT_THAT(table, HasSubstr("25.00%"));  // 5 of 20 seconds
  EXPECT_THAT(table, HasSubstr("1.25"));
  EXPECT_THAT(table, HasSubstr("most stale"));
  EXPECT_THAT(table, Not(HasSubstr("consensus")));  // nobody has one
  EXPECT_THAT(table, HasSubstr("rank 1 in 1 of 2 runs"));
  EXPECT_LT(table.find("wait"), table.find("samples/s"));
  // Not known, or nothing: no columns, and no words about them.
  auto plain = comparison_table(made_up(), {.unicode = true, .width = 200});
  for (auto word : {"sent", "wait", "stale", "slow", "theory"}) EXPECT_THAT(plain, Not(HasSubstr(word)));
}

}  // namespace
}  // namespace trireme::train

// What theory says of comparisons, against numbers worked out by hand.
#include "trireme/report/compare/comparison_theory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace trireme::train {
namespace {

using testing::HasSubstr;

TEST(ComparisonTheory, FindsTheLineThatIsThere) {
  std::vector<GapPoint> points;
  for (double T : {1, 4, 16, 100}) points.push_back({T, 3 / std::sqrt(2 * T)});
  auto rate = fit_rate(points, 2);
  EXPECT_NEAR(rate.slope, -0.5, 1e-12);
  EXPECT_NEAR(rate.constant, 3, 1e-12);
}

TEST(ComparisonTheory, FitsAsLeastSquaresDo) {
  // With L = ln 10: x = 0, L, 2L and y = 0, −L, −L. Slope −L²/2L²; c = exp(−2L/3 + (L + ln 4)/2).
  auto rate = fit_rate({{1, 1}, {10, 0.1}, {100, 0.1}}, 4);
  EXPECT_NEAR(rate.slope, -0.5, 1e-12);
  EXPECT_NEAR(rate.constant, 2 * std::pow(10, -1.0 / 6), 1e-12);
  // y = 0, 0, −L instead: slope −L²/2L² again; c = exp(−L/3 + L/2).
  rate = fit_rate({{1, 1}, {10, 1}, {100, 0.1}}, 1);
  EXPECT_NEAR(rate.slope, -0.5, 1e-12);
  EXPECT_NEAR(rate.constant, std::pow(10, 1.0 / 6), 1e-12);
  EXPECT_NEAR(fit_rate({{1, 1}, {10, 0.1}, {100, 0.01}}, 1).slope, -1, 1e-12);
}

TEST(ComparisonTheory, SaysNothingOfTooLittle) {
  EXPECT_TRUE(std::isnan(fit_rate({{1, 1}, {2, 0.5}}, 1).slope));
  EXPECT_TRUE(std::isnan(fit_rate({{1, 1}, {2, 0.5}, {3, 0}, {0, 1}, {4, -1}, {5, kUnknown}}, 1).slope));
  EXPECT_TRUE(std::isnan(fit_rate({{5, 1}, {5, 2}, {5, 3}}, 1).slope));
}

ComparedRun run_with(std::size_t variant, std::vector<double> losses) {
  ComparedRun run;
  run.variant = variant;
  run.status = "finished";
  run.workers = 2;
  run.steps = run.worker_steps = 40;
  double steps[] = {10, 20, 40};
  for (std::size_t k = 0; k < losses.size(); ++k) {
    CurvePoint point;
    point.step = steps[k];
    point.train_loss = losses[k];
    point.test_metric = 1 - losses[k] / 4;
    point.train_seconds = steps[k] / 10;
    run.curve.push_back(point);
  }
  return run;
}

TEST(ComparisonTheory, GapIsTheMeanSoFarLessTheLowest) {
  auto run = run_with(0, {2, 1, 0.5});
  auto gaps = gaps_of(run, 0.5);
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_DOUBLE_EQ(gaps[0].gap, 1.5);  // 2
  EXPECT_DOUBLE_EQ(gaps[1].gap, 1);    // (20 + 10) / 20
  EXPECT_DOUBLE_EQ(gaps[2].gap, 0.5);  // (20 + 10 + 10) / 40
  EXPECT_EQ(gaps[2].step, 40);
  run.worker_steps = 20;  // the first worker takes twice the steps of the mean
  EXPECT_EQ(gaps_of(run, 0.5)[2].step, 20);
  EXPECT_NEAR(gap_at(gaps, std::sqrt(10 * 20)), std::sqrt(1.5), 1e-12);
  EXPECT_EQ(gap_at(gaps, 20), 1);
  EXPECT_TRUE(std::isnan(gap_at(gaps, 41)));
}

TEST(ComparisonTheory, StalenessIsComparedWithTheLeast) {
  auto comparison = plan_comparison({}, {{"strategy", "ps-ssp:s=3", "allreduce", "ps-bsp", "ps-ssp:s=8"}}, 1);
  comparison.put(run_with(0, {2, 1, 1}));
  comparison.put(run_with(1, {2, 1, 1}));
  comparison.put(run_with(2, {2, 0.5, 0.5}));
  auto theory = theory_of(comparison, 0.75);
  EXPECT_EQ(theory.best_loss, 0.5);
  ASSERT_EQ(theory.staleness.size(), 2u);
  const auto& pair = theory.staleness[0];
  EXPECT_EQ(pair.variant, 0u);
  EXPECT_EQ(pair.against, 2u);
  EXPECT_DOUBLE_EQ(pair.bound_gap(), 2);     // √(4/1)
  EXPECT_DOUBLE_EQ(pair.bound_steps(), 4);   // 4/1
  EXPECT_DOUBLE_EQ(pair.gap, 0.75 / 0.375);  // 50/40 − 0.5 against (20 + 5 + 10)/40 − 0.5
  EXPECT_DOUBLE_EQ(pair.steps, 1);           // both at step 20
  EXPECT_DOUBLE_EQ(pair.seconds, 1);
  EXPECT_DOUBLE_EQ(theory.staleness[1].bound_gap(), 3);
  EXPECT_TRUE(std::isnan(theory.staleness[1].gap));  // has not run
}

TEST(ComparisonTheory, OtherSettingsAreKeptApart) {
  auto comparison = plan_comparison({}, {{"strategy", "ps-bsp", "ps-ssp:s=3"}, {"workers", "2", "4"}}, 1);
  auto theory = theory_of(comparison, 0.5);
  ASSERT_EQ(theory.staleness.size(), 2u);
  EXPECT_EQ(theory.staleness[0].variant, 2u);
  EXPECT_EQ(theory.staleness[0].against, 0u);
  EXPECT_EQ(theory.staleness[1].against, 1u);
}

TEST(ComparisonTheory, WordsAreOneForEachGroup) {
  auto comparison =
      plan_comparison({}, {{"strategy", "allreduce", "local-sgd:H=8", "ps-ssp:s=1", "ps-ssp:s=3", "ps-async"}}, 1);
  for (std::size_t v = 0; v < 5; ++v) comparison.put(run_with(v, {2, 1, 0.5}));
  auto words = theory_words(comparison, theory_of(comparison, 0.75), 0.75, true);
  ASSERT_EQ(words.size(), 5u);
  EXPECT_THAT(words[0], HasSubstr("√(mT)"));
  EXPECT_THAT(words[0], HasSubstr("local-sgd:H=8 -0.79"));
  EXPECT_THAT(words[1], HasSubstr("4FL·√(2(s+1)P/T)"));
  EXPECT_THAT(words[2], HasSubstr("ps-async"));
  EXPECT_THAT(words[3], HasSubstr("ps-ssp:s=3 against ps-ssp:s=1: the bound is 1.41 times"));
  EXPECT_THAT(words[3], HasSubstr("2.00 times the steps"));
  EXPECT_THAT(words[4], HasSubstr("not convex"));
  for (const auto& line : theory_words(comparison, theory_of(comparison, 0.75), 0.75, false)) {
    for (char letter : line) EXPECT_GE(letter, 0) << line;
  }
  EXPECT_TRUE(theory_words(plan_comparison({}, {{"strategy", "allreduce"}}, 1), {}, 0.5, true).empty());
}

}  // namespace
}  // namespace trireme::train

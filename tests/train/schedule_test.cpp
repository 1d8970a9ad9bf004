#include "trireme/train/config/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using ::testing::HasSubstr;

const ScheduleOptions kOptions{.base_lr = 0.4, .total_steps = 100, .steps_per_epoch = 10};

std::vector<double> rates(const RateSchedule& schedule, const std::vector<std::int64_t>& steps) {
  std::vector<double> rates;
  for (std::int64_t step : steps) rates.push_back(schedule.lr(step));
  return rates;
}

void expect_rates(const RateSchedule& schedule, const std::vector<std::pair<std::int64_t, double>>& table) {
  for (auto [step, rate] : table) EXPECT_NEAR(schedule.lr(step), rate, 1e-12) << "step " << step;
}

TEST(TrainSchedule, Constant) {
  expect_rates(*make_schedule("constant", kOptions), {{0, 0.4}, {99, 0.4}, {5000, 0.4}});
}

TEST(TrainSchedule, StepsDownAtItsEpochs) {
  expect_rates(*make_schedule("step:3,6,0.1", kOptions),
               {{0, 0.4}, {29, 0.4}, {30, 0.04}, {59, 0.04}, {60, 0.004}, {99, 0.004}});
  expect_rates(*make_schedule("step:2.5,0.5", kOptions), {{24, 0.4}, {25, 0.2}});
}

TEST(TrainSchedule, CosineEndsAtItsFloor) {
  auto cosine = make_schedule("cosine", kOptions);
  expect_rates(*cosine, {{0, 0.4}, {50, 0.2}, {100, 0}, {200, 0}});
  EXPECT_NEAR(cosine->lr(25), 0.2 * (1 + std::sqrt(0.5)), 1e-12);
  expect_rates(*make_schedule("cosine:0.5", kOptions), {{0, 0.4}, {50, 0.3}, {100, 0.2}});
}

// PyTorch's OneCycleLR(max_lr=0.4, total_steps=100): up until step 29, down until 99.
TEST(TrainSchedule, OneCycleIsPyTorchs) {
  auto schedule = make_schedule("one-cycle", kOptions);
  expect_rates(*schedule, {{0, 0.016}, {29, 0.4}, {64, (0.4 + 1.6e-6) / 2}, {99, 1.6e-6}, {150, 1.6e-6}});
  EXPECT_NEAR(schedule->lr(10), 0.016 + (0.4 - 0.016) * 0.5 * (1 - std::cos(std::numbers::pi * 10 / 29)), 1e-12);
  expect_rates(*make_schedule("one-cycle:0.5", kOptions), {{49, 0.4}});
  auto short_one = make_schedule("one-cycle", {.base_lr = 0.4, .total_steps = 1});
  EXPECT_TRUE(std::isfinite(short_one->lr(0)));
}

TEST(TrainSchedule, PlateauWaitsForTheMetric) {
  auto schedule = make_schedule("plateau:1,0.5", kOptions);
  struct Row {
    double metric, rate;
  };
  // Better, better, worse (1), worse (2: down), equal (1), better by less than a ten-thousandth (2: down), better.
  for (auto [metric, rate] : {Row{0.5, 0.4}, Row{0.6, 0.4}, Row{0.55, 0.4}, Row{0.6, 0.2}, Row{0.6, 0.2},
                              Row{0.60001, 0.1}, Row{0.7, 0.1}, Row{std::nan(""), 0.1}, Row{0.1, 0.05}}) {
    schedule->observe(metric);
    EXPECT_DOUBLE_EQ(schedule->lr(50), rate) << metric;
  }
  ScheduleOptions loss = kOptions;
  loss.higher_is_better = false;
  auto lower = make_schedule("plateau:0,0.1", loss);
  lower->observe(2);
  lower->observe(1);
  EXPECT_DOUBLE_EQ(lower->lr(50), 0.4);
  lower->observe(1.5);
  EXPECT_DOUBLE_EQ(lower->lr(50), 0.04);
}

TEST(TrainSchedule, PlateauGoesOnFromItsState) {
  for (std::size_t cut = 0; cut <= 6; ++cut) {
    auto through = make_schedule("plateau:1,0.5", kOptions), before = make_schedule("plateau:1,0.5", kOptions);
    auto after = make_schedule("plateau:1,0.5", kOptions);
    const double metrics[] = {0.5, 0.4, 0.45, 0.6, 0.5, 0.4};
    for (std::size_t i = 0; i < 6; ++i) {
      through->observe(metrics[i]);
      if (i < cut) before->observe(metrics[i]);
    }
    after->load(before->state());
    for (std::size_t i = cut; i < 6; ++i) after->observe(metrics[i]);
    EXPECT_EQ(after->state(), through->state());
    EXPECT_EQ(after->lr(10), through->lr(10));
    for (const auto& [name, value] : before->state()) EXPECT_TRUE(std::isfinite(value)) << name;
  }
  EXPECT_THROW(make_schedule("plateau", kOptions)->load({{"scale", 1}}), DataError);
}

TEST(TrainSchedule, WarmsUpInStepsAndEpochs) {
  ScheduleOptions options = kOptions;
  options.warmup_epochs = 1.5;
  options.warmup_steps = 5;
  expect_rates(*make_schedule("constant", options), {{0, 0.02}, {9, 0.2}, {19, 0.4}, {20, 0.4}});
  // Cosine starts after the warm-up and ends with the run.
  expect_rates(*make_schedule("cosine", options), {{0, 0.02}, {19, 0.4}, {20, 0.4}, {60, 0.2}, {100, 0}});
  expect_rates(*make_schedule("step:1,3,0.1", options), {{9, 0.2}, {10, 0.022}, {29, 0.04}, {30, 0.004}});
}

TEST(TrainSchedule, EveryOneWarmsUpAndScalesWithTheBatch) {
  for (const ScheduleEntry& entry : schedules()) {
    std::string text(entry.name);
    if (text == "step") text += ":3,6,0.1";
    ScheduleOptions warm = kOptions, scaled = kOptions;
    warm.warmup_steps = 8;
    scaled.global_batch = 1024;
    scaled.reference_batch = 256;
    auto plain = make_schedule(text, kOptions), warming = make_schedule(text, warm),
         larger = make_schedule(text, scaled);
    for (std::int64_t step = 0; step < 8; ++step) {
      EXPECT_NEAR(warming->lr(step), plain->lr(0) * static_cast<double>(step + 1) / 8, 1e-12) << text;
    }
    for (std::int64_t step = 0; step < 120; ++step) {
      EXPECT_NEAR(larger->lr(step), 4 * plain->lr(step), 1e-12) << text;
      EXPECT_GE(plain->lr(step), 0) << text;
    }
    EXPECT_EQ(rates(*plain, {1, 50, 99}), rates(*make_schedule(text, kOptions), {1, 50, 99}));
  }
}

TEST(TrainSchedule, RefusesWhatCannotBe) {
  auto error_of = [](std::string_view text, const ScheduleOptions& options) -> std::string {
    try {
      make_schedule(text, options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("cosin", kOptions),
            "no schedule is called cosin; did you mean cosine? there are constant, step, cosine, one-cycle, plateau");
  EXPECT_EQ(error_of("step:3,x", kOptions), "schedule step: 'x' is not a number");
  EXPECT_EQ(error_of("step:", kOptions), "schedule step: '' is not a number");
  EXPECT_THAT(error_of("step", kOptions), HasSubstr("step:30,60,0.1"));
  EXPECT_EQ(error_of("step:6,3,0.1", kOptions), "schedule step: milestones must be in order");
  EXPECT_EQ(error_of("constant:1", kOptions), "schedule constant: takes no numbers");
  EXPECT_EQ(error_of("cosine:2", kOptions), "schedule cosine: must end at a share of the rate from 0 to 1");
  EXPECT_EQ(error_of("plateau:5,1.5", kOptions), "schedule plateau: the factor must be between 0 and 1");
  EXPECT_EQ(error_of("plateau:0.5", kOptions), "schedule plateau: the patience must be a whole number");
  EXPECT_EQ(error_of("cosine", {.total_steps = 5, .warmup_steps = 5}),
            "schedule cosine: needs more steps than those of the warm-up, has 5 and warms up for 5");
  EXPECT_EQ(error_of("constant", {.base_lr = 0}), "learning rate: must be above 0");
  EXPECT_EQ(error_of("constant", {.reference_batch = 256}), "learning rate: scaling needs to know the global batch");
}

}  // namespace
}  // namespace trireme::train

#include "trireme/trainer/stop_question.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace trireme::train {
namespace {

// Three workers that are alike; the others were told to stop from a step on.
class Alike : public WorkerGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  void sum(std::span<double> numbers) override {
    for (double& number : numbers) number *= 3;
    if (others_told) numbers[0] += 2;
    ++sums;
  }
  void start_giving(const Part&) override {}
  std::optional<std::int64_t> take(const Part&) override { return std::nullopt; }
  void stop_giving() override {}

  int sums = 0;
  bool others_told = false;
};

int asked_in(StopQuestion& question, Alike& group, int steps, double seconds_each, bool meets) {
  const int before = group.sums;
  for (int step = 0; step < steps; ++step) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_each));
    EXPECT_FALSE(question.answer(group));
    if (question.due(step, meets)) question.ask(group, false, step);
  }
  return group.sums - before;
}

TEST(StopQuestion, IsAskedSeldomWhereStepsAreShortAndAlwaysWhereTheyAreLong) {
  Alike group;
  StopQuestion shorts, longs;
  EXPECT_LE(asked_in(shorts, group, 200, 0, true), 6);  // the first two, then every 64th
  EXPECT_GE(asked_in(longs, group, 3, 0.25, true), 3);
}

TEST(StopQuestion, IsAskedNowAndThenByThoseWhoNeverMeet) {
  Alike group;
  StopQuestion question;
  EXPECT_EQ(asked_in(question, group, 256, 0, false), 4);
}

// What a strategy has under way goes first; whoever asks goes on meanwhile.
class Busy : public Alike {
 public:
  void start_sum(std::span<const double> numbers) override { started_.assign(numbers.begin(), numbers.end()); }
  std::span<const double> await_sum() override {
    sum(started_);
    return started_;
  }
};

TEST(StopQuestion, IsAnsweredOneStepLater) {
  Busy group;
  StopQuestion question;
  ASSERT_TRUE(question.due(0, true));
  question.ask(group, true, 0);
  EXPECT_EQ(group.sums, 0);
  EXPECT_FALSE(question.due(1, true)) << "one at a time";
  EXPECT_TRUE(question.answer(group));
  EXPECT_EQ(group.sums, 1);
}

TEST(StopQuestion, OneWhoWasToldIsHeardByAll) {
  Alike group;
  StopQuestion question;
  EXPECT_FALSE(question.answer(group)) << "nobody has asked";
  question.ask(group, true, 0);
  EXPECT_TRUE(question.answer(group));
  question.ask(group, false, 1);
  EXPECT_FALSE(question.answer(group));
  group.others_told = true;
  question.ask(group, false, 2);
  EXPECT_TRUE(question.answer(group));
}

}  // namespace
}  // namespace trireme::train

// Runs that take turns: time in which one stood still is in none of its steps. In place of a training run, a script
// that writes its steps as one does.
#include "trireme/cli/bench/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

// Writes $2 steps of $3 seconds, every tenth of $4, to the folder $1. A minimal system has bash; reading what nobody
// writes waits without a process of its own, which a turn would take for the worker.
constexpr const char* kSteps = R"(
LC_ALL=C
exec {silent}<> <(:) >"$1/metrics.jsonl"
for ((step = 1; step <= $2; ++step)); do
  begin=${EPOCHREALTIME/./}
  if ((step % 10 == 0)); then wait_s=$4; else wait_s=$3; fi
  read -r -t "$wait_s" -u "$silent"
  us=$((${EPOCHREALTIME/./} - begin))
  printf '{"step":%d,"step_ms":%d.%03d,"forward_ms":1,"backward_ms":2,"optimizer_ms":3}\n' $step $((us / 1000)) $((us % 1000))
done)";

Argv stepping(const std::string& folder, int steps, const char* usual_s = "0.01", const char* tenth_s = "0.01") {
  return {"bash", "-c", kSteps, "steps", folder, std::to_string(steps), usual_s, tenth_s};
}

TEST(Turns, StandingStillIsInNoStep) {
  TemporaryFolder folder;
  PausedRun run(stepping(folder.path(), 1'000'000), folder.path(), 3);
  int steps = 0, paused = 0;
  for (int turn = 0; turn < 4; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (const auto& step : run.turn(0.25)) {
      EXPECT_GE(step.step, 0);
      EXPECT_LT(step.step, 0.45) << "a turn and more, but less than it stood still";
      EXPECT_EQ(step.backward, 0.002);
      ++steps;
      paused += step.paused ? 1 : 0;
    }
  }
  EXPECT_GT(steps, 4);
  EXPECT_LE(paused, 4);
  EXPECT_FALSE(run.ended());
}

TEST(Turns, NothingGoesOnWhileItStandsStill) {
  TemporaryFolder folder;
  PausedRun run(stepping(folder.path(), 1'000'000), folder.path(), 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // a line may be under way
  const auto size = [&] { return std::filesystem::file_size(folder.path() + "/metrics.jsonl"); };
  const auto before = size();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(size(), before);
}

// One step in ten takes most of the time. Of the steps after the first of each turn one in ten must be such a one: were
// it cut wherever the turn is over, hardly any would be left.
TEST(Turns, CutNoLongStepInTwo) {
  TemporaryFolder folder;
  PausedRun run(stepping(folder.path(), 1'000'000, "0.002", "0.2"), folder.path(), 3);
  int all = 0, some = 0;
  for (int turn = 0; turn < 12; ++turn) {
    auto steps = run.turn(0.15);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      ++all;
      some += steps[i].number % 10 == 0 ? 1 : 0;
    }
  }
  EXPECT_GE(some, 6) << "of " << all;
}

TEST(Turns, EndWithTheRun) {
  TemporaryFolder folder;
  PausedRun run(stepping(folder.path(), 6), folder.path(), 2);
  const auto deadline = Deadline::in_seconds(20);
  while (!run.ended() && !deadline.passed()) run.turn(0.1);
  EXPECT_TRUE(run.ended());
}

TEST(Turns, ARunThatFailsSaysWhy) {
  TemporaryFolder folder;
  try {
    PausedRun run({"bash", "-c", "echo the disk is full; exit 1"}, folder.path(), 3);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the disk is full"));
  }
}

TEST(Turns, AreSummedUpByTheirMiddle) {
  EXPECT_EQ(middle_mean(std::vector<double>{}), 0);
  EXPECT_DOUBLE_EQ(middle_mean(std::vector<double>{1, 2, 3, 1000}), 2.5);
  EXPECT_EQ(middle_mean(std::vector<Weighted>{}), 0);
  EXPECT_DOUBLE_EQ(middle_mean(std::vector<Weighted>{{1000}, {2}, {1}, {3}}), 2.5);
  EXPECT_DOUBLE_EQ(middle_mean(std::vector<Weighted>{{10, 2}, {1, 6}}), 1) << "the slow one is of the outer quarter";
  EXPECT_DOUBLE_EQ(middle_mean(std::vector<Weighted>{{10, 4}, {1, 4}}), 5.5);
  const std::vector<Turn> turns{{{4, 1, 2, 1}, {8, 2, 4, 2}, {2, 9, 9, 9, /*paused=*/true}}, {}};
  EXPECT_DOUBLE_EQ(mean_step(turns[0]), 14.0 / 3);
  EXPECT_EQ(mean_step(turns[1]), 0);
  const auto usual = middle_of(turns);
  EXPECT_DOUBLE_EQ(usual.step, 14.0 / 3);
  EXPECT_DOUBLE_EQ(usual.forward, 1.5) << "of steps in which it did not stand still";
  EXPECT_THAT(residuals_of({{{4, 1, 2, 1}, {4, 1, 2, 1}, {8, 2, 4, 2}}}), testing::ElementsAre(1, 1, 2));
}

}  // namespace
}  // namespace trireme::bench

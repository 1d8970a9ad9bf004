#include "trireme/mesh/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trireme/base/error.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(PipelineTiming, TheBubbleIsTheFormulas) {
  int compared = 0;
  for (const PipelineKind& kind : kinds()) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int micro_batches = 1; micro_batches <= 24; ++micro_batches) {
        for (int chunks = 1; chunks <= (kind.in_chunks ? 4 : 1); ++chunks) {
          auto formula = kind.bubble(stages, micro_batches, chunks);
          auto schedule = make(kind.name, stages, micro_batches, chunks);
          // Only where backward is split its length matters.
          for (double backward : kind.splits_backward ? std::vector{2.0} : std::vector{1.0, 2.0, 3.7}) {
            auto timing = time_of(schedule, equal_costs(schedule, 1, backward));
            if (formula) {
              EXPECT_NEAR(timing.bubble, *formula, 1e-9)
                  << kind.name << " " << stages << " " << micro_batches << " " << chunks;
              ++compared;
            } else {  // never worse than 1f1b
              EXPECT_GE(timing.bubble, -1e-9);
              EXPECT_LE(timing.bubble, find_kind("1f1b").bubble(stages, micro_batches, 1).value() + 1e-9);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1500);
}

// What must have ended before an action begins, asked of every action anew.
TEST(PipelineTiming, NothingBeginsBeforeWhatItNeeds) {
  std::mt19937 random(5);
  auto draw = [&](std::size_t count) {
    std::vector<double> list(count);
    for (double& each : list) each = std::uniform_real_distribution(0.1, 2.0)(random);
    return list;
  };
  for (const PipelineKind& kind : kinds()) {
    for (int trial = 0; trial < 30; ++trial) {
      int stages = 1 + static_cast<int>(random() % 5), micro_batches = 1 + static_cast<int>(random() % 8);
      auto schedule = make(kind.name, stages, micro_batches, 2);
      std::size_t parts = static_cast<std::size_t>(stages) * schedule.chunks;
      Costs costs{draw(parts), draw(parts), draw(parts), draw(parts), draw(parts), draw(parts)};
      auto timing = time_of(schedule, costs);
      std::map<std::tuple<Action::Kind, int, int>, Timed> found;  // by part and micro-batch
      for (int stage = 0; stage < stages; ++stage) {
        double clock = 0, busy = 0;
        for (const Timed& timed : timing.actions[stage]) {
          EXPECT_EQ(timed.begin_s, clock);  // one thing at a time, and nothing is waited for but messages
          clock = timed.end_s;
          found[{timed.action.kind, timed.action.chunk * stages + stage, timed.action.micro_batch}] = timed;
          bool computes = timed.action.kind == forward || timed.action.kind == backward ||
                          timed.action.kind == weight_gradient || timed.action.kind == update;
          if (computes) busy += timed.end_s - timed.begin_s;
        }
        EXPECT_LE(clock, timing.makespan_s);
        EXPECT_NEAR(busy, timing.busy_s[stage], 1e-9);
        EXPECT_NEAR(busy + timing.idle_s[stage], timing.makespan_s, 1e-9);
      }
      int last = static_cast<int>(parts) - 1;
      for (const auto& [key, timed] : found) {
        auto [what, part, m] = key;
        auto after = [&](Action::Kind other, int other_part, double wire) {
          EXPECT_GE(timed.begin_s, (found.at({other, other_part, m}).end_s + wire) - 1e-9);
        };
        if (what == forward && part > 0) after(forward, part - 1, stages > 1 ? costs.activation[part - 1] : 0);
        if (what == backward && part < last) after(backward, part + 1, stages > 1 ? costs.gradient[part + 1] : 0);
        if (what == backward) after(forward, part, 0);
        if (what == weight_gradient) after(backward, part, 0);
      }
    }
  }
}

TEST(PipelineTiming, ByHand) {
  auto schedule = make("1f1b", 2, 2);
  Costs costs{{1, 2}, {2, 3}, {}, {0.5, 0}, {0, 0.25}, {}};
  auto timing = time_of(schedule, costs);
  // stage 1: F0 from 1.5 to 3.5, B0 to 6.5, F1 to 8.5, B1 to 11.5; stage 0: F0 F1 to 2, B0 from 6.75, B1 from 11.75
  EXPECT_DOUBLE_EQ(timing.makespan_s, 13.75);
  EXPECT_THAT(timing.busy_s, ElementsAre(6, 10));
  EXPECT_THAT(timing.idle_s, ElementsAre(7.75, 3.75));
  EXPECT_DOUBLE_EQ(timing.first_latency_s, 8.75);
  EXPECT_THAT(timing.bubble, DoubleNear(1 - 16 / 27.5, 1e-12));
}

TEST(PipelineTiming, AWireCarriesOneMessageAtATime) {
  auto schedule = make("gpipe", 2, 3);
  auto timing = time_of(schedule, {{1, 0}, {0, 0}, {}, {4, 0}, {}, {}});
  EXPECT_DOUBLE_EQ(timing.makespan_s, 13);  // sent at 1, 2 and 3; there at 5, 9 and 13
}

TEST(PipelineTiming, RefusesCostsOfOtherParts) {
  auto schedule = make("1f1b", 2, 2);
  EXPECT_THROW(time_of(schedule, {{1, 2, 3}, {}, {}, {}, {}, {}}), ConfigError);
  schedule.actions[0].clear();
  EXPECT_THROW(time_of(schedule, {}), ConfigError);
}

}  // namespace
}  // namespace trireme::pipelines

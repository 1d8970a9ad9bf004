#include "trireme/mesh/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/mesh/checker.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "F0 F1 B0": computations only.
std::string computations(const std::vector<Action>& actions, bool chunks = false) {
  std::string text;
  for (const Action& action : actions) {
    const char* letter = action.kind == forward           ? "F"
                         : action.kind == backward        ? "B"
                         : action.kind == weight_gradient ? "W"
                         : action.kind == update          ? "U"
                                                          : nullptr;
    if (!letter) continue;
    text += (text.empty() ? "" : " ") + std::string(letter) + std::to_string(action.micro_batch);
    if (chunks) text += static_cast<char>('a' + action.chunk);
  }
  return text;
}

TEST(PipelineSchedule, EveryKindIsProvenForManySizes) {
  for (const PipelineKind& kind : kinds()) {
    for (int stages = 1; stages <= 9; ++stages) {
      for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
        for (int chunks = 1; chunks <= (kind.in_chunks ? 4 : 1); ++chunks) {
          auto schedule = make(kind.name, stages, micro_batches, chunks);
          EXPECT_THAT(faults_of(schedule), IsEmpty())
              << kind.name << " " << stages << " stages " << micro_batches << " micro-batches " << chunks << " chunks";
        }
      }
    }
  }
}

TEST(PipelineSchedule, IsWhatThePapersDraw) {
  EXPECT_EQ(computations(make("gpipe", 4, 3).actions[1]), "F0 F1 F2 B0 B1 B2");
  auto plain = make("1f1b", 3, 4);
  EXPECT_EQ(computations(plain.actions[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(computations(plain.actions[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(computations(plain.actions[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
  auto split = make("zero-bubble", 3, 4);
  EXPECT_EQ(computations(split.actions[0]), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(computations(split.actions[2]), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  auto stream = make("pipedream", 2, 3);
  EXPECT_EQ(computations(stream.actions[0]), "F0 F1 B0 U0 F2 B1 U1 B2 U2");
  EXPECT_EQ(computations(stream.actions[1]), "F0 B0 U0 F1 B1 U1 F2 B2 U2");
  auto parts = make("interleaved", 2, 2, 2);
  EXPECT_EQ(computations(parts.actions[1], true), "F0a F1a F0b B0b F1b B1b B0a B1a");
}

// Megatron-LM's order: warm up, then a forward and a backward in turn.
TEST(PipelineSchedule, InterleavedIsMegatronsWhereStagesDivide) {
  for (int stages = 2; stages <= 6; ++stages) {
    for (int groups = 1; groups <= 4; ++groups) {
      for (int chunks = 1; chunks <= 4; ++chunks) {
        int total = stages * groups * chunks;
        auto forward_at = [&](int i) {
          int in_group = i % (stages * chunks);
          return Action{forward, i / (stages * chunks) * stages + in_group % stages, in_group / stages};
        };
        auto schedule = make("interleaved", stages, stages * groups, chunks);
        for (int stage = 0; stage < stages; ++stage) {
          int warm_up = std::min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages);
          std::vector<Action> expected;
          for (int i = 0; i < total + warm_up; ++i) {
            if (i < total) expected.push_back(forward_at(i));
            if (i < warm_up) continue;
            Action back = forward_at(i - warm_up);
            expected.push_back({backward, back.micro_batch, chunks - 1 - back.chunk});
          }
          EXPECT_EQ(computations(schedule.actions[stage], true), computations(expected, true));
        }
      }
    }
  }
}

TEST(PipelineSchedule, MessagesStandBesideWhatNeedsThem) {
  auto schedule = make("1f1b", 2, 1);
  EXPECT_THAT(schedule.actions[0],
              ElementsAre(Action{forward}, Action{send_activation}, Action{receive_gradient}, Action{backward}));
  EXPECT_THAT(schedule.actions[1],
              ElementsAre(Action{receive_activation}, Action{forward}, Action{backward}, Action{send_gradient}));
  auto alone = make("interleaved", 1, 3, 3);
  for (const Action& action : alone.actions[0]) {
    EXPECT_TRUE(action.kind == forward || action.kind == backward);  // handed over, not sent
  }
}

TEST(PipelineSchedule, StepsAndDrainAreTheWholeStream) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int per_step = 1; per_step <= 7; ++per_step) {
      for (int steps = 1; steps <= 4; ++steps) {
        auto whole = make("pipedream", stages, per_step * steps);
        for (int stage = 0; stage < stages; ++stage) {
          std::vector<Action> all;
          auto append = [&](const std::vector<Action>& more) { all.insert(all.end(), more.begin(), more.end()); };
          for (int step = 0; step < steps; ++step) append(step_of_stream(stages, stage, step * per_step, per_step));
          append(drain_of_stream(stages, stage, per_step * steps));
          EXPECT_EQ(all, whole.actions[stage]) << stages << " " << stage << " " << per_step << " " << steps;
        }
      }
    }
  }
}

TEST(PipelineSchedule, RefusesInOneLine) {
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([] { make("2f2b", 2, 2); }),
            "no pipeline '2f2b'; there are: gpipe, 1f1b, interleaved, zero-bubble, pipedream");
  EXPECT_EQ(message([] { make("1f1b", 0, 2); }), "pipeline: 0 stages; at least 1 is possible");
  EXPECT_EQ(message([] { make("1f1b", 2, -1); }), "pipeline: -1 micro-batches; at least 1 is possible");
  EXPECT_EQ(message([] { make("interleaved", 2, 2, 0); }), "pipeline: 0 chunks; at least 1 is possible");
  EXPECT_EQ(make("1f1b", 2, 2, 0).chunks, 1);  // counts for kinds in chunks only
  EXPECT_THAT(message([] { make("gpipe", 1 << 30, 1 << 30); }), HasSubstr("are too many; up to "));
}

}  // namespace
}  // namespace trireme::pipelines

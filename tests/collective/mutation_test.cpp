// Breaks right schedules at random, one change at a time, and sees that the checker notices. A change that it lets pass
// must give the right numbers.
#include <gtest/gtest.h>

#include <random>

#include "tests/collective/numbers.h"
#include "tests/sanitized.h"
#include "trireme/collective/check/checker.h"

namespace trireme::test {
namespace {

using Random = std::mt19937;

Slice& side_of(Step& step, Random& random) {
  const bool only_from = step.kind == StepKind::send, only_to = is_receive(step);
  return only_from || (!only_to && random() % 2 == 0) ? step.from : step.to;
}

// Always a change that the step's kind heeds.
void change_step(Step& step, int ranks, Random& random) {
  switch (is_local(step) ? 1 + random() % 6 : random() % 7) {
    case 0:
      step.peer = (step.peer + 1) % ranks;
      break;
    case 1:
      side_of(step, random).offset += 1;
      break;
    case 2:
      side_of(step, random).offset -= 1;
      break;
    case 3:
      side_of(step, random).count += 1;
      break;
    case 4:
      side_of(step, random).count -= 1;
      break;
    case 5: {
      Buffer& buffer = side_of(step, random).buffer;
      buffer = static_cast<Buffer>((static_cast<unsigned>(buffer) + 1 + random() % 3) % 4);
      break;
    }
    case 6:
      step.kind = static_cast<StepKind>((static_cast<unsigned>(step.kind) + 1 + random() % 7) % 8);
      break;
  }
}

// False if there was nothing to change.
bool mutate(Recorded& recorded, Random& random) {
  const std::size_t rank = random() % recorded.rounds.size();
  std::vector<Round>& rounds = recorded.rounds[rank];
  if (rounds.empty()) return false;
  const std::size_t k = random() % rounds.size();
  Round& round = rounds[k];
  if (round.empty()) return false;
  const auto at = static_cast<std::ptrdiff_t>(random() % round.size());
  const std::size_t other = random() % rounds.size();
  if (other == k) {
    change_step(round[at], recorded.call.ranks, random);
    return true;
  }
  switch (random() % 6) {
    case 0:
      round.erase(round.begin() + at);
      break;
    case 1:
      round.insert(round.begin() + at, round[at]);
      break;
    case 2:
      std::swap(round, rounds[other]);
      break;
    case 3: {
      const Step moved = round[at];
      round.erase(round.begin() + at);
      rounds[other].push_back(moved);
      break;
    }
    default:
      change_step(round[at], recorded.call.ranks, random);
  }
  return true;
}

TEST(Mutation, EveryChangeIsCaughtOrHarmless) {
  Random random(20240607);
  int caught = 0, harmless = 0;
  for (const Algorithm& algorithm : algorithms())
    for (int ranks : {2, 3, 5, 8}) {
      const Call call{algorithm.what, 0, ranks, ranks - 1, 7, 9};
      const Recorded right = record(algorithm, call);
      for (int i = 0; i < (test::kSanitized ? 40 : 120); ++i) {
        Recorded changed = right;
        if (!mutate(changed, random)) continue;
        if (check(algorithm, call, changed.schedules())) {
          ++caught;
          continue;
        }
        ++harmless;
        for (Place place : {Place::apart, Place::in_place})
          for (unsigned seed : {1, 2, 3})
            ASSERT_EQ(run_on_numbers(changed, place, seed), "")
                << name(algorithm.what) << " " << algorithm.name << ", " << ranks << " ranks, change " << i;
      }
    }
  EXPECT_GT(caught, 10 * harmless) << caught << " caught, " << harmless << " harmless";
}

}  // namespace
}  // namespace trireme::test

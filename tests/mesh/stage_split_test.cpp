#include "trireme/mesh/split/stage_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "trireme/base/error.h"

namespace trireme::mesh {
namespace {

using pipelines::Action;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Random {
  std::mt19937 engine{11};
  double real(double low, double high) { return std::uniform_real_distribution(low, high)(engine); }
  int whole(int low, int high) { return std::uniform_int_distribution(low, high)(engine); }
  std::vector<PieceCost> pieces(int count) {
    std::vector<PieceCost> list(count);
    for (auto& piece : list) {
      piece = {"",
               real(0, 1),
               real(0, 2),
               static_cast<std::uint64_t>(whole(0, 100)),
               static_cast<std::uint64_t>(whole(0, 50)),
               static_cast<std::uint64_t>(whole(0, 100))};
    }
    return list;
  }
};

void for_each_cut(std::size_t pieces, std::size_t parts,
                  const std::function<void(const std::vector<std::size_t>&)>& visit) {
  std::vector<std::size_t> ends;
  std::function<void(std::size_t)> extend = [&](std::size_t begin) {
    if (ends.size() + 1 == parts) {
      ends.push_back(pieces);
      visit(ends);
      ends.pop_back();
      return;
    }
    for (std::size_t end = begin + 1; end < pieces; ++end) {
      ends.push_back(end);
      extend(end);
      ends.pop_back();
    }
  };
  extend(0);
}

// Straight from the definitions: the step's seconds, and each stage's bytes from a walk through its actions.
struct Oracle {
  std::span<const PieceCost> pieces;
  int stages, micro_batches, chunks;
  const pipelines::PipelineKind& kind;
  const Machine& machine;
  pipelines::Schedule schedule = pipelines::make(kind.name, stages, micro_batches, chunks);

  double sum(std::size_t begin, std::size_t end, auto member) const {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) total += static_cast<double>(pieces[i].*member);
    return total;
  }
  double step(const std::vector<std::size_t>& ends) const {
    double slowest = 0, all = 0;
    for (std::size_t part = 0, begin = 0; part < ends.size(); begin = ends[part++]) {
      double compute = sum(begin, ends[part], &PieceCost::forward_s) + sum(begin, ends[part], &PieceCost::backward_s);
      double bytes = static_cast<double>(pieces[ends[part] - 1].output_bytes);
      double cut = part + 1 < ends.size() ? 2 * (machine.latency_s + bytes / machine.bytes_per_s) : 0;
      slowest = std::max({slowest, compute, cut});
      all += compute + cut;
    }
    double fill = kind.in_chunks ? 1.0 / chunks : kind.splits_backward ? 1.0 / 3 : kind.synchronous ? 1 : 0;
    if (stages == 1) fill = 0;
    return fill * all + (micro_batches * chunks - fill * chunks) * slowest;
  }
  double memory(const std::vector<std::size_t>& ends, int stage) const {
    auto begin_of = [&](int chunk) { return chunk * stages + stage == 0 ? 0 : ends[chunk * stages + stage - 1]; };
    auto end_of = [&](int chunk) { return ends[chunk * stages + stage]; };
    double state = 0, kept = 0, most = 0;
    int in_flight = 0, most_in_flight = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      state += machine.state_factor * sum(begin_of(chunk), end_of(chunk), &PieceCost::parameter_bytes);
    }
    for (const Action& action : schedule.actions[stage]) {
      double mine = sum(begin_of(action.chunk), end_of(action.chunk), &PieceCost::kept_bytes);
      bool frees = action.kind == (kind.splits_backward ? Action::Kind::weight_gradient : Action::Kind::backward);
      if (action.kind == Action::Kind::forward) {
        kept += mine;
        ++in_flight;
      }
      if (frees) {
        kept -= mine;
        --in_flight;
      }
      most = std::max(most, kept);
      most_in_flight = std::max(most_in_flight, in_flight);
    }
    if (!kind.synchronous) state += (most_in_flight - 1) * sum(begin_of(0), end_of(0), &PieceCost::parameter_bytes);
    return state + most;
  }
  bool fits(const std::vector<std::size_t>& ends) const {
    for (int stage = 0; stage < stages; ++stage) {
      if (machine.memory_bytes > 0 && memory(ends, stage) > static_cast<double>(machine.memory_bytes)) return false;
    }
    return true;
  }
};

TEST(StageSplit, IsTheBestOfAllCuts) {
  Random random;
  int limited = 0, impossible = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const auto& kind = pipelines::kinds()[trial % pipelines::kinds().size()];
    int chunks = kind.in_chunks ? random.whole(1, 3) : 1, stages = random.whole(1, 4);
    auto pieces = random.pieces(random.whole(stages * chunks, stages * chunks + 5));
    int micro_batches = random.whole(1, 7);
    Machine machine{random.real(0, 0.2), random.real(20, 400), 0, random.real(1, 4)};
    if (trial % 2) machine.memory_bytes = static_cast<std::uint64_t>(random.whole(50, 1500));
    Oracle oracle{pieces, stages, micro_batches, chunks, kind, machine};
    double best = kNever, least = kNever;
    for_each_cut(pieces.size(), static_cast<std::size_t>(stages) * chunks, [&](const auto& ends) {
      double worst = 0;
      for (int stage = 0; stage < stages; ++stage) worst = std::max(worst, oracle.memory(ends, stage));
      least = std::min(least, worst);
      if (oracle.fits(ends)) best = std::min(best, oracle.step(ends));
    });
    auto split = best_split(pieces, stages, micro_batches, kind, machine, chunks);
    ASSERT_EQ(split.fits, best < kNever) << kind.name;
    EXPECT_TRUE(split.exact);
    ASSERT_EQ(split.ends.size(), static_cast<std::size_t>(stages) * chunks);
    EXPECT_NEAR(split.step_s, oracle.step(split.ends), 1e-9) << kind.name;
    for (int stage = 0; stage < stages; ++stage) {
      EXPECT_EQ(split.memory_bytes[stage], static_cast<std::uint64_t>(std::ceil(oracle.memory(split.ends, stage))));
    }
    if (split.fits) {
      EXPECT_NEAR(split.step_s, best, 1e-9) << kind.name << " " << stages << " " << chunks;
      EXPECT_TRUE(oracle.fits(split.ends));
      limited += machine.memory_bytes > 0;
    } else {
      ++impossible;
      if (chunks == 1) {
        EXPECT_EQ(*std::ranges::max_element(split.memory_bytes), static_cast<std::uint64_t>(std::ceil(least)));
      }
    }
  }
  EXPECT_GT(limited, 300);
  EXPECT_GT(impossible, 300);
}

TEST(StageSplit, TimedIsTheQuickestOfAllWhenPlayed) {
  Random random;
  int better = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto& kind = pipelines::kinds()[trial % pipelines::kinds().size()];
    int chunks = kind.in_chunks ? 2 : 1, stages = random.whole(1, 3), micro_batches = random.whole(1, 6);
    auto pieces = random.pieces(random.whole(stages * chunks, stages * chunks + 3));
    Machine machine{random.real(0, 0.2), random.real(20, 400), 0, 3};
    if (trial % 2) machine.memory_bytes = static_cast<std::uint64_t>(random.whole(300, 1500));
    Oracle oracle{pieces, stages, micro_batches, chunks, kind, machine};
    auto played = [&](const std::vector<std::size_t>& ends) {
      return pipelines::time_of(oracle.schedule, costs_of(pieces, ends, kind.splits_backward, machine)).makespan_s;
    };
    double best = kNever;
    for_each_cut(pieces.size(), static_cast<std::size_t>(stages) * chunks, [&](const auto& ends) {
      if (oracle.fits(ends)) best = std::min(best, played(ends));
    });
    auto split = best_timed_split(pieces, stages, micro_batches, kind, machine, chunks);
    ASSERT_EQ(split.fits, best < kNever);
    EXPECT_NEAR(split.step_s, played(split.ends), 1e-12);
    if (!split.fits) continue;
    EXPECT_NEAR(split.step_s, best, 1e-6);
    better += played(best_split(pieces, stages, micro_batches, kind, machine, chunks).ends) > best * 1.001;
  }
  EXPECT_GT(better, 0);
}

TEST(StageSplit, TimedIsNeverWorseWhereThereAreMany) {
  Random random;
  auto pieces = random.pieces(40);
  Machine machine{0.01, 1e4, 0, 3};
  const auto& kind = pipelines::find_kind("1f1b");
  auto beat = best_split(pieces, 6, 12, kind, machine), timed = best_timed_split(pieces, 6, 12, kind, machine);
  auto schedule = pipelines::make("1f1b", 6, 12);
  EXPECT_LE(timed.step_s, pipelines::time_of(schedule, costs_of(pieces, beat.ends, false, machine)).makespan_s);
  EXPECT_EQ(timed.ends.back(), 40u);
}

TEST(StageSplit, ByHand) {
  // Four pieces of 1, 1, 1 and 3 seconds in two stages: 3 | 3.
  std::vector<PieceCost> pieces(4, {"", 0.25, 0.75, 10, 5, 0});
  pieces[3].forward_s = 1, pieces[3].backward_s = 2;
  Machine machine{0, 1e9, 0, 3};
  auto split = best_split(pieces, 2, 4, pipelines::find_kind("1f1b"), machine);
  EXPECT_THAT(split.ends, ElementsAre(3, 4));
  EXPECT_DOUBLE_EQ(split.slowest_s, 3);
  EXPECT_DOUBLE_EQ(split.step_s, 6 + 3 * 3);              // through both stages once, then three more beats
  EXPECT_THAT(split.memory_bytes, ElementsAre(120, 35));  // 3·30 + 2·15, 3·10 + 5
  machine.memory_bytes = 100;
  split = best_split(pieces, 2, 4, pipelines::find_kind("1f1b"), machine);
  EXPECT_THAT(split.ends, ElementsAre(2, 4));
  EXPECT_TRUE(split.fits);
  machine.memory_bytes = 10;
  EXPECT_FALSE(best_split(pieces, 2, 4, pipelines::find_kind("1f1b"), machine).fits);
}

TEST(StageSplit, IsQuickForManyPieces) {
  Random random;
  auto pieces = random.pieces(150);
  Machine machine{0.01, 1e3, 0, 3};
  EXPECT_EQ(best_split(pieces, 16, 32, pipelines::find_kind("1f1b"), machine).ends.size(), 16u);
  EXPECT_EQ(best_split(pieces, 8, 32, pipelines::find_kind("interleaved"), machine, 2).ends.size(), 16u);
}

TEST(StageSplit, RefusesMorePartsThanPieces) {
  std::vector<PieceCost> pieces(5);
  auto message = [&](int stages, std::string_view kind) -> std::string {
    try {
      best_split(pieces, stages, 1, pipelines::find_kind(kind), {}, 2);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(6, "1f1b"), HasSubstr("6 parts of 5 pieces; up to 5 stages are possible"));
  EXPECT_THAT(message(3, "interleaved"), HasSubstr("6 parts of 5 pieces; up to 2 stages of 2 chunks are possible"));
  EXPECT_THAT(message(0, "1f1b"), HasSubstr("each is at least 1"));
}

// ---- replicated stages ----

// All ways to cut and to replicate.
double best_of_all(std::span<const PieceCost> pieces, int workers, int micro_batches, const Machine& machine) {
  double best = kNever;
  std::function<void(std::size_t, std::vector<std::pair<std::size_t, int>>&, int)> extend =
      [&](std::size_t begin, auto& stages, int left) {
        if (begin == pieces.size()) {
          double slowest = 0;
          int from_here = 0;
          for (const auto& stage : stages) from_here += stage.second;
          std::size_t first = 0;
          for (auto [end, replicas] : stages) {
            double compute = 0, parameters = 0, kept = 0;
            for (; first < end; ++first) {
              compute += pieces[first].forward_s + pieces[first].backward_s;
              parameters += static_cast<double>(pieces[first].parameter_bytes);
              kept += static_cast<double>(pieces[first].kept_bytes);
            }
            int in_flight = std::min((from_here + replicas - 1) / replicas, (micro_batches + replicas - 1) / replicas);
            double memory = parameters * machine.state_factor + in_flight * kept;
            if (machine.memory_bytes > 0 && memory > static_cast<double>(machine.memory_bytes)) return;
            double ring = 2 * (replicas - 1) * (machine.latency_s + parameters / replicas / machine.bytes_per_s);
            double out = static_cast<double>(pieces[end - 1].output_bytes);
            double cut = end < pieces.size() ? 2 * (machine.latency_s + out / machine.bytes_per_s) : 0;
            slowest = std::max({slowest, micro_batches * compute / replicas, ring, micro_batches * cut});
            from_here -= replicas;
          }
          best = std::min(best, slowest);
          return;
        }
        for (std::size_t end = begin + 1; end <= pieces.size(); ++end) {
          for (int replicas = 1; replicas <= left; ++replicas) {
            stages.emplace_back(end, replicas);
            extend(end, stages, left - replicas);
            stages.pop_back();
          }
        }
      };
  std::vector<std::pair<std::size_t, int>> stages;
  extend(0, stages, workers);
  return best;
}

TEST(StageSplit, ReplicatedIsTheBestOfAllPlans) {
  Random random;
  int impossible = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    auto pieces = random.pieces(random.whole(1, 6));
    int workers = random.whole(1, 5), micro_batches = random.whole(1, 6);
    Machine machine{random.real(0, 0.3), random.real(20, 400), 0, 3};
    if (trial % 2) machine.memory_bytes = static_cast<std::uint64_t>(random.whole(100, 1000));
    double best = best_of_all(pieces, workers, micro_batches, machine);
    auto plan = best_plan(pieces, workers, micro_batches, machine);
    ASSERT_EQ(plan.fits, best < kNever);
    impossible += !plan.fits;
    if (!plan.fits) continue;
    EXPECT_NEAR(plan.slowest_s, best, 1e-9);
    int used = 0;
    for (const auto& stage : plan.stages) used += stage.replicas;
    EXPECT_LE(used, workers);
    EXPECT_EQ(plan.stages.back().end, pieces.size());
  }
  EXPECT_GT(impossible, 20);
}

// PipeDream's example for VGG: convolutions, small in weights, on most workers; what is large in weights alone.
TEST(StageSplit, ReplicatesWhatComputesAndNotWhatWeighs) {
  std::vector<PieceCost> pieces{{"convolutions", 3, 6, 10, 1, 1}, {"linear", 1, 2, 4000, 1, 1}};
  auto plan = best_plan(pieces, 4, 1, {0, 100, 0, 3});
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].replicas, 3);
  EXPECT_EQ(plan.stages[1].replicas, 1);
  EXPECT_DOUBLE_EQ(plan.slowest_s, 3);
  EXPECT_THROW(best_plan({}, 4, 1, {}), ConfigError);
}

}  // namespace
}  // namespace trireme::mesh

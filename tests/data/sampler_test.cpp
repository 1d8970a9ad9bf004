#include "trireme/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/error.h"

namespace trireme::data {
namespace {

using Indices = std::vector<std::int64_t>;

// All ranks side by side; what they take in one step, in the order of the ranks.
class Ranks {
 public:
  Ranks(std::int64_t size, std::int64_t batch, int workers, SamplerOptions base = {}) {
    for (int rank = 0; rank < workers; ++rank) {
      base.size = size, base.batch = batch, base.rank = rank, base.workers = workers;
      samplers_.emplace_back(base);
    }
  }
  std::optional<Indices> step() {
    Indices all;
    std::int64_t globally = -1;
    bool ended = false;
    std::size_t fewest = SIZE_MAX, most = 0;
    for (auto& sampler : samplers_) {
      const auto share = sampler.next();
      if (!share) {
        ended = true;
        continue;
      }
      EXPECT_FALSE(ended);
      EXPECT_TRUE(globally < 0 || globally == share->globally);
      globally = share->globally;
      position = share->position;
      epoch = share->epoch;
      fewest = std::min(fewest, share->indices.size());
      most = std::max(most, share->indices.size());
      all.insert(all.end(), share->indices.begin(), share->indices.end());
    }
    if (ended) return std::nullopt;
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), globally);
    spread = most - fewest;
    return all;
  }
  Indices rest_of_epoch() {
    Indices all;
    while (const auto part = step()) all.insert(all.end(), part->begin(), part->end());
    return all;
  }
  void seek(std::int64_t to_epoch, std::int64_t to) {
    for (auto& sampler : samplers_) sampler.seek(to_epoch, to);
  }
  std::vector<ShardedSampler> samplers_;
  std::int64_t position = 0, epoch = 0;
  std::size_t spread = 0;
};

TEST(Sampler, EveryWorkerCountSeesOneOrderAndEverySampleOnce) {
  for (const std::int64_t size : {1, 7, 60, 61, 119, 240}) {
    auto one = Ranks(size, 60, 1);
    const auto expected = one.rest_of_epoch();
    auto sorted = expected;
    std::sort(sorted.begin(), sorted.end());
    Indices all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
    for (int workers = 1; workers <= 5; ++workers) {
      Ranks ranks(size, 60 / workers, workers);
      EXPECT_EQ(ranks.rest_of_epoch(), expected) << size << " samples, " << workers << " workers";
    }
  }
}

TEST(Sampler, StepsEqualThoseOfOneWorkerWithTheWholeBatch) {
  for (int workers = 1; workers <= 5; ++workers) {
    Ranks one(1000, 8 * workers, 1), many(1000, 8, workers);
    for (int step = 0; step < 300; ++step) {
      const auto expected = one.step();
      EXPECT_EQ(many.step(), expected);
      EXPECT_EQ(many.position, one.position);
      EXPECT_EQ(many.epoch, one.epoch);
      EXPECT_LE(many.spread, 1u);
    }
  }
}

TEST(Sampler, EpochsAndSeedsDiffer) {
  Ranks ranks(100, 10, 2), other(100, 10, 2, {.seed = 2}), plain(100, 10, 2, {.shuffle = false});
  const auto first = ranks.rest_of_epoch(), second = ranks.rest_of_epoch();
  EXPECT_NE(first, second);
  EXPECT_NE(first, other.rest_of_epoch());
  Indices order(100);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(plain.rest_of_epoch(), order);
  EXPECT_EQ(plain.rest_of_epoch(), order);
}

TEST(Sampler, ResumesAnywhereWithAnyNumberOfWorkers) {
  for (int before = 1; before <= 5; ++before) {
    for (int after = 1; after <= 5; ++after) {
      Ranks whole(103, 7, before), ranks(103, 7, before), resumed(103, 5, after);
      whole.rest_of_epoch();
      ranks.rest_of_epoch();
      const auto expected = whole.rest_of_epoch();
      auto seen = *ranks.step();
      const auto more = *ranks.step();
      seen.insert(seen.end(), more.begin(), more.end());
      resumed.seek(ranks.epoch, ranks.position);
      const auto rest = resumed.rest_of_epoch();
      seen.insert(seen.end(), rest.begin(), rest.end());
      EXPECT_EQ(seen, expected);
      resumed.step();
      EXPECT_EQ(resumed.epoch, 2);
    }
  }
}

TEST(Sampler, MicroBatchesAreTheSameForEveryWorkerCount) {
  // Micro-batch j of a step, whoever has it: samples [j·m, j·m + m) of the step.
  const std::int64_t whole = 24, m = 2, size = 24 * 3 + 7;
  Ranks one(size, whole, 1);
  for (const int workers : {1, 2, 3, 4}) {
    one.seek(0, 0);
    Ranks ranks(size, whole / workers, workers, {.micro_batch = m});
    while (const auto expected = one.step()) {
      Indices all;
      for (int rank = 0; rank < workers; ++rank) {
        const auto share = ranks.samplers_[static_cast<std::size_t>(rank)].next();
        ASSERT_TRUE(share);
        const auto first = std::min<std::int64_t>(rank * whole / workers, share->globally);
        EXPECT_EQ(static_cast<std::int64_t>(all.size()), first);
        all.insert(all.end(), share->indices.begin(), share->indices.end());
      }
      EXPECT_EQ(all, *expected);
    }
  }
}

TEST(Sampler, RanksBeginTogetherAndThenPart) {
  SamplerOptions options{.size = 60, .batch = 5, .workers = 3, .seed = 2, .together = 90};  // six steps of 15 samples
  ShardedSampler first(options);
  options.rank = 2;
  ShardedSampler third(options), resumed(options);
  options.together = 0;
  ShardedSampler alone(options);
  resumed.seek(1, 30);
  for (int step = 0; step < 8; ++step) {
    const auto one = first.next(), other = third.next(), own = alone.next();
    ASSERT_TRUE(other) << step;
    EXPECT_EQ(other->indices == one->indices, step < 6) << step;
    EXPECT_EQ(other->indices == own->indices, step >= 6) << step;
    EXPECT_EQ(other->position, one->position);
    if (step >= 6) {
      EXPECT_EQ(other->indices, resumed.next()->indices);
    }
    if (step == 3) {
      EXPECT_FALSE(first.next() || third.next() || alone.next());
    }
  }
}

TEST(Sampler, CountsItsSteps) {
  for (const bool drop : {false, true}) {
    for (int workers = 1; workers <= 4; ++workers) {
      ShardedSampler sampler({.size = 50, .batch = 4, .rank = workers - 1, .workers = workers, .drop_last = drop});
      std::int64_t steps = 0;
      EXPECT_EQ(sampler.steps_left(), sampler.steps_per_epoch());
      while (sampler.next()) ++steps;
      EXPECT_EQ(steps, sampler.steps_per_epoch());
      EXPECT_EQ(steps, drop ? 50 / (4 * workers) : (50 + 4 * workers - 1) / (4 * workers));
      EXPECT_EQ(sampler.epoch(), 1);
    }
  }
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(ShardedSampler({.size = 10, .batch = 0}), ConfigError);
  EXPECT_THROW(ShardedSampler({.size = 10, .batch = 1, .rank = 2, .workers = 2}), ConfigError);
  EXPECT_THROW(ShardedSampler({.size = 10, .batch = 5, .micro_batch = 2}), ConfigError);
  ShardedSampler sampler({.size = 10, .batch = 5});
  EXPECT_THROW(sampler.seek(0, 11), ConfigError);
  EXPECT_THROW(sampler.seek(-1, 0), ConfigError);
  sampler.seek(3, 10);
  EXPECT_FALSE(sampler.next());
  EXPECT_EQ(sampler.next()->epoch, 4);
  EXPECT_FALSE(ShardedSampler({.size = 0, .batch = 5}).next());
}

}  // namespace
}  // namespace trireme::data

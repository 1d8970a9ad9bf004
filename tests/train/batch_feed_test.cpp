// Who takes which batch, and where all pause.
#include "trireme/train/batch_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include "trireme/base/clock.h"

namespace trireme::train {
namespace {

data::SamplerOptions options(int rank, int workers) {
  return {.size = 103, .batch = 4, .rank = rank, .workers = workers, .seed = 7};
}

// Shares up to the next pause.
std::vector<data::Share> until_mark(BatchFeed& feed) {
  std::vector<data::Share> shares;
  while (auto share = feed.next()) shares.push_back(*share);
  return shares;
}

// One counter for all workers, as a group has.
class Counter {
 public:
  BatchFeed::Take take() {
    return [this](const WorkerGroup::Part& part) -> std::optional<std::int64_t> {
      if (part.number != part_) {
        EXPECT_GT(part.number, part_);
        part_ = part.number;
        next_ = part.first;
      }
      if (next_ >= part.limit) return std::nullopt;
      return next_++;
    };
  }

 private:
  std::int64_t part_ = -1, next_ = 0;
};

TEST(BatchFeed, InStepIsTheSamplerWithPauses) {
  for (std::int64_t marks : {1, 2, 3, 5}) {
    data::ShardedSampler plain(options(1, 2));
    BatchFeed feed(options(1, 2), marks);
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::size_t steps = 0;
      for (std::int64_t part = 0; part < marks; ++part) {
        auto shares = until_mark(feed);
        for (const auto& share : shares) EXPECT_EQ(share.indices, plain.next()->indices);
        steps += shares.size();
        EXPECT_EQ(steps, static_cast<std::size_t>((13 * (part + 1) + marks - 1) / marks)) << marks << " marks";
      }
      EXPECT_FALSE(plain.next());
    }
  }
}

TEST(BatchFeed, PausesOnceAStepAtMost) {
  BatchFeed feed(options(0, 2), 100);  // 13 steps
  for (int step = 0; step < 26; ++step) EXPECT_EQ(until_mark(feed).size(), 1u);
}

TEST(BatchFeed, TakenBatchesCoverAnEpochOnce) {
  Counter counter;
  BatchFeed fast(options(0, 3), 2, counter.take()), slow(options(2, 3), 2, counter.take());
  EXPECT_EQ(fast.steps_per_epoch(), 9);  // 26 batches over three workers
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::map<std::int64_t, int> seen;
    for (int part = 0; part < 2; ++part) {
      std::int64_t most = 0;
      auto count = [&](const data::Share& share) {
        for (auto index : share.indices) ++seen[index];
        EXPECT_EQ(share.globally, static_cast<std::int64_t>(share.indices.size()) * 3);
        EXPECT_EQ(share.epoch, epoch);
        most = std::max(most, share.position);
      };
      count(*slow.next());  // takes one and is late
      for (const auto& share : until_mark(fast)) count(share);
      EXPECT_FALSE(slow.next());
      EXPECT_EQ(most, part == 0 ? 52 : 103);
    }
    EXPECT_EQ(seen.size(), 103u);
    for (auto [index, times] : seen) EXPECT_EQ(times, 1) << index;
  }
}

TEST(BatchFeed, KnowsWhereTheNextMarkIs) {
  BatchFeed feed(options(0, 2), 3);  // 13 steps of 8 samples: marks after 5, 9 and 13
  EXPECT_EQ(feed.mark_after(0), 40);
  EXPECT_EQ(feed.mark_after(39), 72);  // within the fifth step, which is the last of its part
  EXPECT_EQ(feed.mark_after(40), 72);
  EXPECT_EQ(feed.mark_after(72), 103);
  EXPECT_EQ(feed.mark_after(100), 103);
}

TEST(BatchFeed, GoesOnFromAPosition) {
  BatchFeed whole(options(0, 2), 3);
  until_mark(whole);
  auto rest = until_mark(whole);
  BatchFeed resumed(options(0, 2), 3);
  resumed.seek(0, 40);  // the end of the first part: five steps of eight
  auto found = until_mark(resumed);
  ASSERT_EQ(found.size(), rest.size());
  EXPECT_EQ(found.front().indices, rest.front().indices);
  EXPECT_EQ(found.back().indices, rest.back().indices);

  Counter counter;
  BatchFeed taken(options(1, 2), 1, counter.take());
  taken.seek(3, 92);
  auto last = until_mark(taken);
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last.front().position, 96);
  EXPECT_EQ(last.front().epoch, 3);
  EXPECT_EQ(until_mark(taken).front().epoch, 4);
}

// Three workers take a batch a millisecond, one takes nine milliseconds: every batch goes to one of them, and nobody is
// still at one when the others have long come to the mark.
TEST(BatchFeed, TheSlowOneLetsOthersHaveTheLast) {
  std::mutex mutex;
  Counter counter;
  const auto one = counter.take();
  const BatchFeed::Take take = [&](const WorkerGroup::Part& part) {
    const std::scoped_lock lock(mutex);
    return one(part);
  };
  const data::SamplerOptions samples{.size = 1600, .batch = 4, .workers = 4, .seed = 7};
  std::vector<std::map<std::int64_t, int>> seen(4);
  std::vector<std::vector<double>> at_mark(4);
  std::barrier marks(4);
  {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < 4; ++rank) {
      workers.emplace_back([&, rank] {
        auto own = samples;
        own.rank = rank;
        BatchFeed feed(own, 2, take);
        for (int part = 0; part < 4; ++part) {
          while (auto share = feed.next()) {
            for (auto index : share->indices) ++seen[static_cast<std::size_t>(rank)][index];
            std::this_thread::sleep_for(std::chrono::milliseconds(rank == 1 ? 9 : 1));
          }
          at_mark[static_cast<std::size_t>(rank)].push_back(now_seconds());
          marks.arrive_and_wait();
        }
      });
    }
  }
  std::map<std::int64_t, int> all;
  for (const auto& one_of_them : seen) {
    for (auto [index, times] : one_of_them) all[index] += times;
  }
  EXPECT_EQ(all.size(), 1600u);
  for (auto [index, times] : all) EXPECT_EQ(times, 2) << index;  // once an epoch
  std::vector<double> late;
  for (std::size_t part = 1; part < 4; ++part) {
    late.push_back(at_mark[1][part] - std::max({at_mark[0][part], at_mark[2][part], at_mark[3][part]}));
  }
  EXPECT_LT(*std::ranges::min_element(late), 0.007);  // of nine, were it to take one of the last as it comes
}

// Of two workers as fast as each other one stood still for a while, as when its machine does: from the next batch on it
// is as fast as before, and lets nobody first.
TEST(BatchFeed, WhoStoodStillOnceIsNotSlow) {
  Counter counter;
  const auto take = counter.take();
  const data::SamplerOptions samples{.size = 800, .batch = 4, .workers = 2, .seed = 7};
  BatchFeed feed(samples, 1, take);
  double longest = 0;
  for (int step = 0; step < 90; ++step) {
    const double asked = now_seconds();
    ASSERT_TRUE(feed.next());
    longest = std::max(longest, now_seconds() - asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(step == 60 ? 400 : 1));
    ASSERT_TRUE(take({0, 0, 0, 200}));  // by the other
  }
  EXPECT_LT(longest, 0.03);
}

}  // namespace
}  // namespace trireme::train

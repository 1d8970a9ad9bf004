// Several at once, again and again.
#include "trireme/train/learner/learner_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>

namespace trireme::train {
namespace {

TEST(LearnerPool, AllAtOnceAndEachOnItsOwnThread) {
  LearnerPool pool;
  std::vector<std::thread::id> first(3);
  for (int round = 0; round < 200; ++round) {
    int count = 1 + round % 3;
    std::latch all(count);
    std::vector<std::thread::id> who(static_cast<std::size_t>(count));
    pool.run(count, [&](int k) {
      all.arrive_and_wait();  // would hang if they took turns
      who[static_cast<std::size_t>(k)] = std::this_thread::get_id();
    });
    EXPECT_EQ(who[0], std::this_thread::get_id());
    for (std::size_t k = 1; k < who.size(); ++k) {
      if (first[k] == std::thread::id()) first[k] = who[k];
      EXPECT_EQ(who[k], first[k]);
    }
  }
}

TEST(LearnerPool, WhatGoesWrongIsThrownWhenAllAreDone) {
  LearnerPool pool;
  for (int bad : {0, 2}) {
    std::atomic<int> done = 0;
    EXPECT_THROW(pool.run(3,
                          [&](int k) {
                            if (k == bad) throw std::runtime_error("no");
                            ++done;
                          }),
                 std::runtime_error);
    EXPECT_EQ(done, 2);
  }
}

}  // namespace
}  // namespace trireme::train

#include "trireme/sync/exchange/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "trireme/base/error.h"

namespace trireme::sync {
namespace {

using ::testing::ElementsAre;

// Straight from the definition: an event at a time, without sums or fronts.
double oracle(std::span<const Gradient> gradients, const Buckets& buckets, const BucketCosts& costs) {
  double channel_free = 0, communicated = 0;
  std::size_t next = 0;
  for (const std::size_t& end : buckets) {
    std::size_t bytes = 0;
    double ready = 0;
    for (; next < end; ++next) {
      bytes += gradients[next].bytes;
      ready = gradients[next].ready_s + costs.theft * communicated;
    }
    bool alone = &end == &buckets[0] ? end == 1 : end - (&end)[-1] == 1;
    double cost = costs.all_reduce(bytes);
    if (!alone || !gradients[end - 1].in_place) cost += costs.pack_s_per_byte * bytes;
    channel_free = std::max(channel_free, ready) + cost;
    communicated += cost;
  }
  return channel_free;
}

double best_of_all(std::span<const Gradient> gradients, const BucketCosts& costs) {
  double best = std::numeric_limits<double>::infinity();
  for (unsigned cuts = 0; cuts < (1u << (gradients.size() - 1)); ++cuts) {
    Buckets ends;
    for (std::size_t j = 1; j < gradients.size(); ++j) {
      if (cuts >> (j - 1) & 1) ends.push_back(j);
    }
    ends.push_back(gradients.size());
    best = std::min(best, oracle(gradients, ends, costs));
  }
  return best;
}

TEST(BucketPlan, OptimalIsTheBestOfAllPartitions) {
  std::mt19937 random(7);
  auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<Gradient> gradients(1 + random() % 12);
    double ready = 0;
    for (auto& gradient : gradients) {
      ready += uniform(0, 1) < 0.3 ? 0 : uniform(0, 1e-3);
      gradient = {ready, static_cast<std::size_t>(std::exp(uniform(1, 16))), random() % 2 == 0};
    }
    double alpha = uniform(0, 1e-3), beta = uniform(0, 1e-9), step = uniform(0, 1e-3);
    BucketCosts costs{[=](std::size_t n) { return alpha + beta * n + (n > 100'000 ? step : 0); },
                      trial % 3 == 0   ? 0.0
                      : trial % 3 == 1 ? 1.0
                                       : uniform(0, 1),
                      uniform(0, 1e-9)};
    double best = best_of_all(gradients, costs);
    auto plan = plan_buckets(parse_bucket_plan("optimal"), gradients, costs);
    EXPECT_NEAR(finish_time(gradients, plan, costs), best, 1e-12) << "trial " << trial;
    for (const char* other : {"cap:25", "cap:0.1", "tensor", "one", "mgwfbp"}) {
      auto rival = plan_buckets(parse_bucket_plan(other), gradients, costs);
      EXPECT_EQ(rival.back(), gradients.size());
      EXPECT_NEAR(finish_time(gradients, rival, costs), oracle(gradients, rival, costs), 1e-12);
      EXPECT_LE(best, finish_time(gradients, rival, costs) + 1e-12) << other << ", trial " << trial;
    }
  }
}

TEST(BucketPlan, EachPlanCutsAsItsNameSays) {
  std::vector<Gradient> gradients{{1, 400 << 10}, {2, 800 << 10}, {3, 100 << 10}, {3.5, 10 << 10}, {9, 10 << 10}};
  BucketCosts costs{[](std::size_t n) { return 1 + 1e-9 * n; }, 0};
  auto ends = [&](const char* name) { return plan_buckets(parse_bucket_plan(name), gradients, costs); };
  EXPECT_THAT(ends("cap:1"), ElementsAre(2, 5));
  EXPECT_THAT(ends("tensor"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(ends("one"), ElementsAre(5));
  // 0 is ready at 1 and starts up until 2, before 1 is there; it keeps the channel a little longer, so that 1 starts up
  // until just after 3, when 2 is there, which waits for 3.
  EXPECT_THAT(ends("mgwfbp"), ElementsAre(1, 4, 5));
}

TEST(BucketPlan, InlineMergesAllThatCostsMoreApart) {
  std::vector<Gradient> gradients{{1e-3, 1000}, {2e-3, 1000}, {3e-3, 1000}};
  BucketCosts costs{[](std::size_t n) { return 1e-5 + 1e-9 * n; }, 1};
  EXPECT_THAT(plan_buckets(parse_bucket_plan("optimal"), gradients, costs), ElementsAre(3));
}

TEST(BucketPlan, HundredsOfGradientsPlanInNoTime) {
  std::vector<Gradient> gradients;
  for (int j = 0; j < 600; ++j) gradients.push_back({j * 1e-4, static_cast<std::size_t>(1000 + j * 7919 % 1000000)});
  BucketCosts costs{[](std::size_t n) { return 2e-5 + 2e-10 * n; }, 0.5};
  auto plan = plan_buckets(parse_bucket_plan("optimal"), gradients, costs);
  auto rival = plan_buckets(parse_bucket_plan("cap:25"), gradients, costs);
  EXPECT_LE(finish_time(gradients, plan, costs), finish_time(gradients, rival, costs));
}

TEST(BucketPlan, WrongNamesAreRefused) {
  for (const char* name : {"", "capp", "cap:", "cap:0", "cap:-1", "cap:x", "one:2", "optimal:3"}) {
    EXPECT_THROW(parse_bucket_plan(name), ConfigError) << name;
  }
  EXPECT_TRUE(plan_buckets(parse_bucket_plan("optimal"), {}, {}).empty());
}

}  // namespace
}  // namespace trireme::sync

#include "trireme/cli/bench/predict/training_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::bench {
namespace {

std::vector<std::string> names(const std::vector<Way>& ways) {
  std::vector<std::string> all;
  for (const auto& way : ways) all.push_back(way.name());
  return all;
}

const std::vector<std::string> kCodecs{"none", "int8"};
const Place kHost{"this host", ""}, kHosts{"2 hosts", "100mbit"};

TEST(Ways, EveryStrategyIsAmongThem) {
  const auto ways = ways_of({}, kCodecs, kHost);
  for (const auto& kind : sync::strategies()) {
    EXPECT_TRUE(std::ranges::any_of(ways, [&](const Way& way) { return way.strategy.starts_with(kind.name); }))
        << kind.name;
  }
}

TEST(Ways, WhatSendsNothingIsOneWay) {
  EXPECT_THAT(names(ways_of({"average-at-end", "local-sgd"}, kCodecs, kHost)),
              testing::ElementsAre("local-sgd none", "local-sgd int8", "average-at-end none"));
  EXPECT_THAT(names(ways_of({"average-at-end"}, {"int8"}, kHost)), testing::ElementsAre("average-at-end int8"));
}

TEST(Ways, ThreadsOfOneProcessNeedOneHost) {
  EXPECT_EQ(ways_of({"hogwild"}, kCodecs, kHost).at(0).launch, "threads");
  EXPECT_TRUE(ways_of({"hogwild"}, kCodecs, kHosts).empty());
}

TEST(Ways, WhatCannotBeCompressedIsSentAsItIs) {
  EXPECT_THAT(names(ways_of({"gossip-dpsgd"}, kCodecs, kHosts)), testing::ElementsAre("gossip-dpsgd none"));
}

}  // namespace
}  // namespace trireme::bench

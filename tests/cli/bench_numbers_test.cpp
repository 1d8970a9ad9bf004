#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/ping.h"
#include "trireme/cli/bench/report.h"

namespace trireme::bench {
namespace {

Row sample_row() {
  Row row;
  row.bytes = 1000;
  row.count = 250;
  row.results = {{"trireme", "direct", "shm", "heap", {1, 2, 9}, 0.5, 1, 30, 0},
                 {"openmpi", "default", "shm", "private", {2, 8, 18}, 1, 5, 30, 0},
                 {"gloo", "default", "tcp", "private", {4, 4, 90}, 4, 5, 30, 0}};
  row.ping_ns = {25, 30, 28};
  row.floor_us = {0.5, 1.5, 4.5};
  return row;
}

TEST(BenchNumbers, RatiosPairRoundsBeforeTheMedian) {
  Row row = sample_row();
  EXPECT_DOUBLE_EQ(row.ratio(1), 0.5);            // of 1/2, 2/8, 9/18
  EXPECT_DOUBLE_EQ(row.ratio(2), 0.25);           // of 1/4, 2/4, 9/90
  EXPECT_DOUBLE_EQ(row.ratio_to_best(), 0.5);     // of 1/2, 2/4, 9/18
  EXPECT_DOUBLE_EQ(*row.floor_fraction(0), 0.5);  // of 1/2, 3/4, 1/2
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(BenchNumbers, StateNeedsAllRoundsToAgree) {
  Row row = sample_row();
  EXPECT_EQ(row.state(), "near");
  row.ping_ns[1] = 170;
  EXPECT_EQ(row.state(), "mixed");
  row.ping_ns = {};
  EXPECT_EQ(row.state(), "-");
}

TEST(BenchNumbers, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1);
}

TEST(BenchNumbers, JsonHasTheKeysPromised) {
  Options options;
  std::istringstream lines(json_rows(options, sample_row()));
  std::vector<std::string> systems;
  for (std::string line; std::getline(lines, line);) {
    auto object = nlohmann::json::parse(line);
    for (auto* key : {"collective", "algorithm", "transport", "buffers", "ranks", "bytes", "us_p50", "us_min",
                      "algbw_gbs", "busbw_gbs", "floor_fraction", "ping_ns", "peer"}) {
      EXPECT_TRUE(object.contains(key)) << key;
    }
    systems.push_back(object["peer"]);
  }
  EXPECT_THAT(systems, testing::ElementsAre("trireme", "openmpi", "gloo"));
  auto first =
      nlohmann::json::parse(json_rows(options, sample_row()).substr(0, json_rows(options, sample_row()).find('\n')));
  EXPECT_DOUBLE_EQ(first["us_p50"], 2);
  EXPECT_DOUBLE_EQ(first["algbw_gbs"], 0.5);
}

TEST(BenchNumbers, PingIsATimeLightCouldTake) {
  auto ping = core_ping_ns();
  if (!ping) return;  // one core: nothing to measure
  EXPECT_GT(*ping, 1);
  EXPECT_LT(*ping, 1e6);
}

TEST(BenchNumbers, UnknownPeersAreNamed) {
  try {
    parse_peers("openmpi,nccl");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("openmpi, mpich, gloo"));
  }
}

}  // namespace
}  // namespace trireme::bench

// `trireme bench` as a user runs it. Sizes and rounds are small: what is tested is what it says, not how fast it is.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/run_command.h"
#include "trireme/cli/bench/peers.h"

namespace trireme::bench {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run(const std::string& arguments, const std::string& environment = "") {
  auto errors = std::filesystem::temp_directory_path() / ("trireme-bench-test-" + std::to_string(::getpid()));
  std::string command = environment + " " TRIREME_PROGRAM " " + arguments + " 2>" + errors.string() + " </dev/null";
  auto [code, out] = test::run_command(command);
  Outcome outcome{code, std::move(out), ""};
  std::ostringstream text;
  text << std::ifstream(errors).rdbuf();
  outcome.err = text.str();
  std::filesystem::remove(errors);
  return outcome;
}

std::vector<nlohmann::json> objects(const std::string& text) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

constexpr const char* kQuick = " --iterations 4 --rounds 2 --json";

TEST(BenchCommand, EveryCollectiveIsMeasuredAndRight) {
  for (Collective what : kCollectives) {
    const std::string sizes = what == Collective::barrier ? "" : " --bytes 4,3000";
    auto outcome = run("bench " + std::string(name(what)) + " --ranks 3 --transport inproc" + sizes + kQuick);
    ASSERT_EQ(outcome.code, 0) << name(what) << ": " << outcome.err;
    auto rows = objects(outcome.out);
    ASSERT_EQ(rows.size(), what == Collective::barrier ? 1U : 2U) << name(what);
    for (auto& row : rows) {
      EXPECT_EQ(row["collective"], name(what));
      EXPECT_EQ(row["peer"], "trireme");
      EXPECT_EQ(row["transport"], "inproc");
      EXPECT_EQ(row["ranks"], 3);
      EXPECT_EQ(row["errors"], 0);
      EXPECT_GT(row["us_p50"], 0);
      EXPECT_LE(row["us_min"], row["us_p50"]);
    }
  }
}

TEST(BenchCommand, EveryAlgorithmTypeAndOperatorOfAllReduce) {
  auto expect_right = [](const std::string& flags) {
    auto outcome = run("bench all-reduce --ranks 4 --transport inproc --bytes 1K " + flags + kQuick);
    ASSERT_EQ(outcome.code, 0) << flags << ": " << outcome.err;
    EXPECT_EQ(objects(outcome.out)[0]["errors"], 0) << flags;
  };
  for (auto* algorithm : algorithms_for(Collective::all_reduce)) {
    expect_right("--algorithm " + std::string(algorithm->name));
  }
  for (DType dtype : kDTypes) expect_right("--dtype " + std::string(name(dtype)));
  for (Op op : kOps) expect_right("--dtype i32 --op " + std::string(name(op)));
  expect_right("--lanes 3");
  expect_right("--deterministic");
  expect_right("--buffers private");
}

// Each number of lanes has its turn in every round, and is compared with the first.
TEST(BenchCommand, LanesAreComparedWithEachOther) {
  const std::string command = "bench all-reduce --ranks 2 --transport inproc --bytes 64K --lanes 1,2,4";
  auto outcome = run(command + " --iterations 4 --rounds 5 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = objects(outcome.out);
  ASSERT_EQ(rows.size(), 3u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["peer"], "trireme");
    EXPECT_EQ(rows[i]["lanes"], 1 << i);
    EXPECT_EQ(rows[i]["errors"], 0);
    EXPECT_EQ(rows[i].contains("ratio"), i > 0);
    EXPECT_FALSE(rows[i].contains("ratio_best"));
  }
  const auto table = run(command + " --iterations 4 --rounds 5");
  EXPECT_THAT(table.out, HasSubstr("4 calls under way; x of lanes: the time on 1 lane over that"));
  EXPECT_THAT(table.out, HasSubstr("4 lanes     x"));
}

TEST(BenchCommand, ProcessesOverEveryTransport) {
  for (std::string transport : {"shm", "tcp"}) {
    for (std::string buffers : {"heap", "private"}) {
      auto outcome =
          run("bench all-reduce --ranks 2 --bytes 4,64K --transport " + transport + " --buffers " + buffers + kQuick);
      ASSERT_EQ(outcome.code, 0) << transport << ": " << outcome.err;
      for (auto& row : objects(outcome.out)) {
        EXPECT_EQ(row["transport"], transport);
        EXPECT_EQ(row["buffers"], buffers);
        EXPECT_EQ(row["errors"], 0);
      }
    }
  }
}

TEST(BenchCommand, TheTableHasNcclTestsColumns) {
  auto outcome = run("bench all-reduce --ranks 2 --transport inproc --bytes 64 --iterations 4 --rounds 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (auto* column : {"size", "count", "type", "redop", "time", "algbw", "busbw", "error", "floor%", "ping"}) {
    EXPECT_THAT(outcome.out, HasSubstr(column));
  }
  EXPECT_EQ(outcome.err, "");
}

TEST(BenchCommand, BadInputIsOneLineAndCodeTwo) {
  for (std::string arguments : {"bench",
                                "bench all-redune",
                                "bench all-reduce --ranks 0",
                                "bench all-reduce --ranks two",
                                "bench all-reduce --bytes 0",
                                "bench all-reduce --bytes 5",
                                "bench all-reduce --bytes 1Q",
                                "bench all-reduce --bytes 4,,8",
                                "bench all-reduce --transport pigeon",
                                "bench all-reduce --algorithm best",
                                "bench all-reduce --buffers public",
                                "bench all-reduce --dtype f8",
                                "bench all-reduce --op plus",
                                "bench all-reduce --op band",
                                "bench all-reduce --lanes 0",
                                "bench all-reduce --lanes 1,0",
                                "bench all-reduce --lanes 1,2,1",
                                "bench all-reduce --lanes 1,2 --rounds 3",
                                "bench all-reduce --iterations 0",
                                "bench all-reduce --peers nccl",
                                "bench all-reduce --peers gloo --rounds 4",
                                "bench all-reduce --frobnicate",
                                "bench reduce-scatter --peers gloo",
                                "bench all-reduce --peers openmpi --op avg",
                                "bench all-reduce --dtype bf16 --op avg --ranks 32",
                                "bench all-reduce --transport inproc --bytes 60G --ranks 200"}) {
    auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << arguments << ": " << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("trireme: ")) << outcome.err;
  }
}

// By name, before a table is begun.
TEST(BenchCommand, WhatWouldDoNothingIsRefused) {
  for (auto [arguments, named] : std::initializer_list<std::pair<std::string, std::string>>{
           {"barrier --bytes 4", "--bytes"},
           {"barrier --dtype f64", "--dtype"},
           {"barrier --op sum", "--op"},
           {"broadcast --op max", "--op"},
           {"all-gather --op sum", "--op"},
           {"broadcast --deterministic", "--deterministic"},
           {"all-reduce --deterministic --algorithm ring", "--deterministic"},
           {"simulate --growth", "--growth"},
           {"predict --cases foo", "--cases"},
           {"predict --rounds 0", "--rounds"},
           {"predict --transports foo", "--transports"},
           {"predict -n 0", "--ranks"},
           {"predict --largest 0", "--largest"},
           {"predict --strategies foo", "foo"},
           {"predict --codecs foo", "foo"},
           {"predict --workers 0", "--workers"},
           {"predict --places foo", "--places"},
           {"predict --models :4", "--models"},
           {"predict --models mlp:0", "--models"},
           {"predict --models mlp:foo", "--models"},
           {"predict --cases training --strategies hogwild --codecs topk:0.01", "nothing to measure"},
           {"predict --cases training --transports shm", "--transports"},
           {"predict --cases calls --models mlp", "--models"}}) {
    auto outcome = run("bench " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(named)) << arguments;
  }
}

TEST(BenchCommand, AMissingPeerNamesItsPackages) {
  for (auto& peer : peers()) {
    if (peer.needs.starts_with('/')) continue;  // a header: not hidden by the PATH
    auto outcome = run("bench all-reduce --peers " + std::string(peer.name), "PATH=/nowhere");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(std::string(peer.packages)));
  }
}

class BenchPeer : public testing::TestWithParam<std::string> {};

// Where a peer is installed it is measured, elsewhere its packages are asked for.
TEST_P(BenchPeer, TakesTurnsWithUs) {
  const Peer& peer = *parse_peers(GetParam())[0];
  std::string cache = "XDG_CACHE_HOME=" + (std::filesystem::path(TRIREME_PROGRAM).parent_path() / "cache").string();
  auto outcome = run("bench all-reduce --ranks 2 --transport inproc --bytes 1K --iterations 4 --json --peers " +
                         std::string(peer.name),
                     cache);
  if (outcome.code == 2) {
    EXPECT_THAT(outcome.err, HasSubstr("apt-get install " + std::string(peer.packages)));
    return;
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto rows = objects(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["peer"], peer.name);
  EXPECT_EQ(rows[1]["errors"], 0);
  EXPECT_EQ(rows[0]["rounds"], 5);
  EXPECT_GT(rows[1]["ratio"], 0);
}

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (auto& peer : peers()) names.emplace_back(peer.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, BenchPeer, testing::ValuesIn(peer_names()), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace trireme::bench

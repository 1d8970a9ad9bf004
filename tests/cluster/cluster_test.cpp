// Cluster files: what is read, what is written, and what is said of bad ones.
#include "trireme/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/base/mix.h"
#include "trireme/cluster/network.h"
#include "trireme/cluster/sim/collective_time.h"

namespace trireme::cluster {
namespace {

constexpr const char* kWhole = R"(seed = 7
[[link]]
name = "fast"
alpha = "20us"
bandwidth = "10gbit"
points = [[1024, "30us"], ["64K", "90us"]]
[[link]]
name = "slow"
alpha = 1e-3
beta = "8ns"
shared = false
[[node]]
name = "big"
count = 2
workers = 4
cores = 32
compute = 2
memory = "64G"
price_per_h = 1.5
wires = 2
gamma = "0.05ns"
copy = 1e-11
[node.inside]
alpha = "1us"
bandwidth = "10GB/s"
sync = "400ns"
[node.inside.memory]
alpha = 0
bandwidth = "20GB/s"
[[node]]
name = "small"
link = "slow"
[topology]
kind = "star"
[[straggler]]
kind = "persistent"
workers = [3]
factor = 1.5
[[straggler]]
kind = "transient"
share = 0.25
on = "2s"
off = "20s"
factor = 3
[[straggler]]
kind = "residuals"
ratios = [0.97, 1, 1.1]
)";

std::string error_of(const std::string& text) {
  try {
    parse_cluster(text, "c.toml");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ClusterFile, IsReadWhole) {
  const Cluster cluster = parse_cluster(kWhole, "c.toml");
  EXPECT_EQ(cluster.seed, 7u);
  EXPECT_EQ(cluster.workers(), 9);
  EXPECT_EQ(cluster.node_count(), 3);
  EXPECT_EQ(cluster.class_of(7).name, "big");
  EXPECT_EQ(cluster.class_of(8).name, "small");
  EXPECT_EQ(cluster.nodes[0].worker_memory(), 16ull << 30);
  EXPECT_EQ(cluster.nodes[0].wires, 2);
  EXPECT_EQ(cluster.nodes[1].wires, 1) << "links that are not shared have one wire unless said otherwise";
  EXPECT_DOUBLE_EQ(cluster.links[0].message(65536), 90e-6);
  EXPECT_NEAR(cluster.links[0].message(65536 + 1.25e9), 1 + 90e-6, 1e-12);
  EXPECT_TRUE(cluster.links[0].shared);
  EXPECT_FALSE(cluster.links[1].shared);
  EXPECT_DOUBLE_EQ(cluster.nodes[0].inside.gamma, 5e-11);
  EXPECT_DOUBLE_EQ(cluster.nodes[0].inside.memory.slope, 5e-11);
  ASSERT_EQ(cluster.stragglers.size(), 3u);
  EXPECT_EQ(cluster.stragglers[1].kind, Straggler::Kind::transient);
  EXPECT_DOUBLE_EQ(cluster.stragglers[1].off_s, 20);
  EXPECT_THAT(cluster.stragglers[2].ratios, testing::ElementsAre(0.97, 1, 1.1));
}

TEST(ClusterFile, WhatIsWrittenIsReadBack) {
  const Cluster cluster = parse_cluster(kWhole, "c.toml");
  EXPECT_EQ(parse_cluster(to_toml(cluster), "c.toml"), cluster) << to_toml(cluster);
  Cluster tree = flat_cluster(64, 1e-5, 1.25e9, 5e-11, 0);
  tree.file = "c.toml";
  tree.links[0].shared = true;
  tree.links[0].name = "a \"b\" \\ \n";
  tree.wiring = {.kind = "fat-tree", .radix = 8, .levels = 2, .oversubscription = {4}, .dims = {}, .switch_s = 1e-6};
  EXPECT_EQ(parse_cluster(to_toml(tree), "c.toml"), tree) << to_toml(tree);
  Cluster host = host_cluster(2, LinkModel{});
  host.file = "c.toml";
  EXPECT_EQ(parse_cluster(to_toml(host), "c.toml"), host) << to_toml(host);
  EXPECT_EQ(to_toml(host).find("[[link]]"), std::string::npos);
  tree.wiring = {.kind = "torus", .dims = {4, 16}};
  EXPECT_EQ(parse_cluster(to_toml(tree), "c.toml"), tree) << to_toml(tree);
}

TEST(ClusterFile, CorrectionsAreReadBackAndCount) {
  auto plain = flat_cluster(2, 1e-5, 1e9);
  auto corrected = plain;
  corrected.corrections = Corrections(2);
  corrected.corrections.add(Collective::all_reduce, "ring", 1024, 1.5);
  const auto read = parse_cluster(to_toml(corrected), corrected.file);
  EXPECT_EQ(read.corrections, corrected.corrections);
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  const Call call{Collective::all_reduce, 0, 2, 0, 256, 256};
  EXPECT_DOUBLE_EQ(play(Network(read), ring, call, 4), 1.5 * play(Network(plain), ring, call, 4));
  // Late ranks are waited for as before.
  std::vector<double> begins{0, 1}, ends(2);
  const double alone = play(Network(plain), ring, call, 4);
  EXPECT_NEAR(play(Network(read), ring, call, 4, begins, ends).end_s, 1 + 1.5 * alone, 1e-12);
}

TEST(ClusterFile, ErrorsNameFileLineAndKey) {
  const std::string link = "[[link]]\nname = \"l\"\nalpha = \"1us\"\nbandwidth = \"1gbit\"\n";
  EXPECT_EQ(error_of(link + "[[node]]\ncount = 0\n"),
            "c.toml:6: node.count: expected a whole number from 1 to 1048576");
  EXPECT_EQ(error_of(link + "[[node]]\ncount = 2\nlink = \"x\"\n"),
            "c.toml:7: node.link: expected the name of a [[link]]: l");
  EXPECT_EQ(error_of("[[node]]\ncount = 2\n"), "c.toml:1: link: expected a [[link]] between the nodes");
  EXPECT_EQ(error_of(link), "c.toml:1: node: expected at least one [[node]]");
  EXPECT_EQ(error_of("[[link]]\nname = \"l\"\nalpha = \"1 mile\"\n"),
            "c.toml:3: link.alpha: expected a time such as \"50us\", or seconds");
  EXPECT_EQ(error_of("[[link]]\nname = \"l\"\nalpha = 1\n"),
            "c.toml:1: link.bandwidth: expected either bandwidth, such as \"1gbit\", or beta");
  EXPECT_EQ(error_of("[[link]]\nname = \"l\"\nalpha = 1\nbandwidth = 0\n"),
            "c.toml:4: link.bandwidth: expected a rate such as \"1gbit\" or \"125MB/s\", or bytes a second");
  EXPECT_EQ(error_of(link + "[[node]]\ncuont = 2\n").substr(0, 75),
            "c.toml:6: node.cuont: expected no such key here, but one of: compute, copy,");
  EXPECT_EQ(error_of("seed = \n").substr(0, 19), "c.toml:1: not TOML:");
  EXPECT_EQ(error_of(link + "[[node]]\n[topology]\nkind = \"mesh\"\n").substr(0, 54),
            "c.toml:7: topology.kind: expected one of: flat, star, ");
  EXPECT_EQ(error_of(link + "[[node]]\n[topology]\nkind = \"torus\"\ndims = [2, 3]\n"),
            "c.toml:6: topology: expected dims whose product is 1, the number of nodes, not 6");
  EXPECT_EQ(error_of(link + "[[node]]\n[[straggler]]\nkind = \"persistent\"\nworkers = [1]\n"),
            "c.toml:8: straggler.workers: expected a number, or a list of numbers, from 0 to 0");
  EXPECT_EQ(error_of(link + "points = [[8, \"2us\"], [4, \"3us\"]]\n[[node]]\n").substr(0, 61),
            "c.toml:5: link.points: expected a list of [bytes, time], byte");
  EXPECT_EQ(error_of(link + "[[node]]\nwires = 0\n"),
            "c.toml:6: node.wires: expected a whole number from 1, or \"many\"");
  EXPECT_THROW(load_cluster("/no/such/file.toml"), DataError);
}

// Whatever is done to a file, it is read or refused with one line, and never anything else.
TEST(ClusterFile, DamagedFilesAreRefused) {
  const std::string whole = kWhole;
  const auto attempt = [](const std::string& text) {
    const std::string error = error_of(text);
    EXPECT_TRUE(error == "no error" || error.starts_with("c.toml:")) << error << " for\n" << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  };
  for (std::size_t size = 0; size < whole.size(); ++size) attempt(whole.substr(0, size));
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string text = whole;
    const std::uint64_t dice = mixed(i);
    const std::size_t at = dice % text.size();
    const std::string_view words[] = {"-1",  "\"\"", "[", "true",       "1e400", "99999999999999999999",
                                      "nan", "\xff", "=", "[[node]]\n", "{}"};
    text.replace(at, (dice >> 32) % 6, words[(dice >> 40) % std::size(words)]);
    attempt(text);
  }
}

TEST(ClusterFile, EveryExampleLoads) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TRIREME_SOURCE_DIR "/examples/clusters")) {
    if (entry.path().extension() != ".toml") continue;
    const Cluster cluster = load_cluster(entry.path().string());
    EXPECT_GT(Network(cluster).ranks(), 1) << entry.path();
    EXPECT_EQ(parse_cluster(to_toml(cluster), cluster.file), cluster) << entry.path();
    ++seen;
  }
  EXPECT_EQ(seen, 5);
}

}  // namespace
}  // namespace trireme::cluster

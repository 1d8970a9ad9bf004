// Routes: every kind connects everyone, over links that follow each other, and as long as the books say.
#include "trireme/cluster/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/cluster/network.h"

namespace trireme::cluster {
namespace {

std::vector<std::string> route(const Topology& topology, int from, int to) {
  std::vector<int> links;
  topology.route(from, to, links);
  std::vector<std::string> names;
  for (int link : links) names.push_back(topology.link_name(link));
  return names;
}

Cluster cluster_of(int nodes, Wiring wiring, int workers = 1) {
  Cluster cluster = flat_cluster(nodes, 1e-5, 1e9);
  cluster.links[0].shared = find_topology(wiring.kind).shared;
  cluster.nodes[0].workers = workers;
  cluster.wiring = std::move(wiring);
  return cluster;
}

Cluster example(std::string_view kind) {
  Wiring wiring{std::string(kind)};
  wiring.radix = 3;
  wiring.levels = 3;
  wiring.dims = {4, 6};
  return cluster_of(24, wiring, kind == "rail" ? 2 : 1);
}

TEST(Topology, EveryKindRoutesEverybody) {
  using testing::ElementsAre;
  for (const TopologyKind& kind : topology_kinds()) {
    const Cluster cluster = example(kind.name);
    Topology topology(cluster);
    std::vector<int> links, back;
    for (int a = 0; a < topology.workers(); ++a) {
      for (int b = 0; b < topology.workers(); ++b) {
        topology.route(a, b, links);
        topology.route(b, a, back);
        EXPECT_EQ(links.empty(), topology.place(a).node == topology.place(b).node);
        for (int link : links) {
          ASSERT_GE(link, 0);
          ASSERT_LT(link, static_cast<int>(topology.links().size()));
          EXPECT_EQ(std::ranges::count(links, link), 1) << kind.name;
        }
        if (kind.name != "ring" && kind.name != "torus") {
          for (int link : links)
            EXPECT_EQ(std::ranges::count(back, link), kind.name == "rail" && std::ranges::count(back, link))
                << kind.name;
        }
      }
    }
    for (std::size_t i = 0; i < topology.links().size(); ++i)
      EXPECT_FALSE(topology.link_name(static_cast<int>(i)).empty());
  }
}

TEST(Topology, FatTreeClimbsAsFarAsItMust) {
  using testing::ElementsAre;
  Topology topology(example("fat-tree"));  // 24 nodes, 3 under a switch, 3 levels
  EXPECT_THAT(route(topology, 0, 2), ElementsAre("from node 0", "to node 2"));
  EXPECT_THAT(route(topology, 1, 5),
              ElementsAre("from node 1", "up from switch 0 of level 1", "down to switch 1 of level 1", "to node 5"));
  EXPECT_THAT(route(topology, 0, 23),
              ElementsAre("from node 0", "up from switch 0 of level 1", "up from switch 0 of level 2",
                          "down to switch 2 of level 2", "down to switch 7 of level 1", "to node 23"));
}

TEST(Topology, FatTreeLinksCarryWhatOversubscriptionLeaves) {
  Wiring wiring{.kind = "fat-tree", .radix = 4, .levels = 3, .oversubscription = {4, 2}};
  Topology topology(cluster_of(64, wiring));
  std::vector<int> links;
  topology.route(0, 63, links);
  ASSERT_EQ(links.size(), 6u);
  const auto rate = [&](int i) { return topology.links()[links[i]].bytes_per_s; };
  EXPECT_NEAR(rate(0), 1e9, 1);
  EXPECT_NEAR(rate(1), 4 * 1e9 / 4, 1);
  EXPECT_NEAR(rate(2), 16 * 1e9 / 8, 1);
  EXPECT_NEAR(rate(3), 16 * 1e9 / 8, 1);
}

TEST(Topology, TorusGoesTheShorterWayRound) {
  using testing::ElementsAre;
  Topology topology(cluster_of(24, {.kind = "torus", .dims = {4, 6}}));
  EXPECT_THAT(route(topology, 0, 1), ElementsAre("out of node 0", "node 0 +0"));
  EXPECT_THAT(route(topology, 0, 3), ElementsAre("out of node 0", "node 0 -0"));
  EXPECT_THAT(route(topology, 0, 2), ElementsAre("out of node 0", "node 0 +0", "node 1 +0"));
  EXPECT_THAT(route(topology, 0, 21), ElementsAre("out of node 0", "node 0 +0", "node 1 -1"));
  Topology ring(cluster_of(5, {"ring"}));
  EXPECT_THAT(route(ring, 4, 1), ElementsAre("out of node 4", "node 4 +0", "node 0 +0"));
  EXPECT_THAT(route(ring, 1, 4), ElementsAre("out of node 1", "node 1 -0", "node 0 -0"));
}

TEST(Topology, RailsAreReachedInsideTheNode) {
  using testing::ElementsAre;
  Topology topology(cluster_of(3, {"rail"}, 2));
  EXPECT_THAT(route(topology, 0, 2), ElementsAre("from node 0 on rail 0", "to node 1 on rail 0"));
  EXPECT_THAT(route(topology, 0, 3), ElementsAre("inside node 0", "from node 0 on rail 1", "to node 1 on rail 1"));
  EXPECT_THAT(route(topology, 0, 1), ElementsAre());
}

TEST(Topology, LatencyIsPaidOnceAndForEveryFurtherSwitch) {
  Wiring wiring{.kind = "fat-tree", .radix = 4, .levels = 3};
  wiring.switch_s = 1e-6;
  Network tree(cluster_of(64, wiring));
  EXPECT_NEAR(tree.latency(0, 1), 1e-5, 1e-15);
  EXPECT_NEAR(tree.latency(0, 4), 1.1e-5, 1e-15);
  EXPECT_NEAR(tree.latency(0, 63), 1.2e-5, 1e-15);
  EXPECT_NEAR(tree.message(0, 63, 1e9), 1 + 1.2e-5, 1e-12);
  EXPECT_NEAR(Network(cluster_of(4, {"star"})).latency(0, 3), 1e-5, 1e-15);
  Wiring torus{.kind = "torus", .dims = {8, 8}};
  torus.switch_s = 1e-6;
  EXPECT_NEAR(Network(cluster_of(64, torus)).latency(0, 9), 1.2e-5, 1e-15);
}

TEST(Topology, SlowestLinkSetsTheRate) {
  Cluster cluster = cluster_of(2, {"star"});
  cluster.links.push_back({"slow", {1e-3, {{1000, 2e-3}}, 1e-8}, true});
  cluster.nodes.push_back(cluster.nodes[0]);
  cluster.nodes[1].link = 1;
  Network network(cluster);
  EXPECT_NEAR(network.message(0, 1, 1000), 1e-5 + 1e-6, 1e-15);
  EXPECT_NEAR(network.message(0, 2, 1000), 1e-5 + 1e-3, 1e-15);  // α of the sender, the receiver's curve
  EXPECT_NEAR(network.message(2, 0, 1000), 2e-3, 1e-15);
  EXPECT_FALSE(network.uniform());
}

TEST(Topology, MisfitsAreRefused) {
  EXPECT_THROW(Topology(cluster_of(10, {.kind = "fat-tree", .radix = 3, .levels = 2})), ConfigError);
  EXPECT_THROW(Topology(cluster_of(10, {.kind = "torus", .dims = {3, 3}})), ConfigError);
  EXPECT_THROW(find_topology("mesh"), ConfigError);
}

}  // namespace
}  // namespace trireme::cluster

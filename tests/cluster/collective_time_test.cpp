// Collectives in time: against the closed forms, against collective/predict, one tier against the next, and against
// contention worked out by hand.
#include "trireme/cluster/sim/collective_time.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "trireme/base/error.h"
#include "trireme/base/mix.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/formulas.h"

namespace trireme::cluster {
namespace {

constexpr double kAlpha = 5e-6, kRate = 1e10, kGamma = 5e-11;

Call shape_of(const Algorithm& algorithm, int ranks, std::size_t count) {
  if (algorithm.what == Collective::barrier) count = 0;
  return {algorithm.what, 0, ranks, 0, count, count};
}

std::string where(const Algorithm& algorithm, const Call& shape) {
  return fmt::format("{} {} on {} ranks, {} elements", name(algorithm.what), algorithm.name, shape.ranks, shape.count);
}

Cluster wired(int nodes, Wiring wiring, double alpha = 0, double rate = 100) {
  Cluster cluster = flat_cluster(nodes, alpha, rate, 0, 0);
  cluster.links[0].shared = find_topology(wiring.kind).shared;
  cluster.wiring = std::move(wiring);
  return cluster;
}

std::vector<double> jitter(int ranks, double most, std::uint64_t seed) {
  std::vector<double> begins;
  for (int r = 0; r < ranks; ++r) {
    begins.push_back(static_cast<double>(mixed(seed + static_cast<std::uint64_t>(r)) >> 11) * 0x1p-53 * most);
  }
  return begins;
}

Played by(Tier tier, const Network& network, const Algorithm& algorithm, const Call& shape,
          const std::vector<double>& begins, std::vector<double>& ends, Traffic* traffic = nullptr) {
  ends.resize(begins.size());
  return play_by(tier, network, algorithm, shape, 4, begins, ends, traffic);
}

TEST(CollectiveTime, FlatEqualsPredict) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared) continue;
    for (int ranks : {1, 2, 5, 8, 13}) {
      for (int wires : {0, 1}) {
        for (std::size_t count : {3, 1003}) {
          Network network(flat_cluster(ranks, kAlpha, kRate, kGamma, wires));
          LinkModel model;
          model.message = {kAlpha, {}, 1 / kRate};
          model.gamma = kGamma;
          model.wires = wires == 1 ? Wires::one : Wires::many;
          const Call shape = shape_of(algorithm, ranks, count);
          const double expected = predict(algorithm, shape, DType::f32, model);
          EXPECT_NEAR(play(network, algorithm, shape, 4), expected, expected * 1e-9) << where(algorithm, shape);
        }
      }
    }
  }
}

// The bar: ring, tree, butterfly, halving-doubling, parameter server, and all others that have a form.
TEST(CollectiveTime, FlatEqualsClosedForms) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared || algorithm.name == "tree") continue;
    for (int ranks : {8, 32}) {
      for (int wires : {0, 1}) {
        const Call shape = shape_of(algorithm, ranks, 1 << 16);
        const double bytes = 4.0 * static_cast<double>(shape.count) * (has_blocks(shape.what) ? ranks : 1);
        auto form = closed_form(shape.what, algorithm.name, {ranks, bytes, kAlpha, 1 / kRate, kGamma});
        ASSERT_TRUE(form);
        const double expected = form->time(wires == 1 ? Wires::one : Wires::many).value;
        Network network(flat_cluster(ranks, kAlpha, kRate, kGamma, wires));
        EXPECT_NEAR(play(network, algorithm, shape, 4), expected, expected * 1e-9) << where(algorithm, shape);
        std::vector<double> begins(static_cast<std::size_t>(ranks)), ends;
        EXPECT_NEAR(by(Tier::max_plus, network, algorithm, shape, begins, ends).end_s, expected, expected * 1e-9)
            << where(algorithm, shape);
      }
    }
  }
}

TEST(CollectiveTime, FullTreesEqualTheClosedForm) {
  const Algorithm& tree = find_algorithm(Collective::all_reduce, "tree");
  for (int levels : {2, 3, 5}) {
    const int ranks = (2 << levels) - 1;
    const double n = 4000;
    Network many(flat_cluster(ranks, kAlpha, kRate, kGamma, 0)), one(flat_cluster(ranks, kAlpha, kRate, kGamma, 1));
    const double expected = 2 * levels * (kAlpha + n / kRate + n * kGamma);
    EXPECT_NEAR(play(many, tree, shape_of(tree, ranks, 1000), 4), expected, expected * 1e-9);
    const double in_turn = 4 * levels * (kAlpha + n / kRate) + 2 * levels * n * kGamma;
    EXPECT_NEAR(play(one, tree, shape_of(tree, ranks, 1000), 4), in_turn, in_turn * 1e-9);
  }
}

TEST(CollectiveTime, ServersEqualTheClosedForm) {
  // A separate server and P workers: P + 1 ranks of a master-worker exchange; the master adds nothing of its own.
  const Algorithm& algorithm = find_algorithm(Collective::all_reduce, "master-worker");
  for (int workers : {2, 8, 31}) {
    for (int wires : {0, 1}) {
      Network network(flat_cluster(workers + 1, kAlpha, kRate, kGamma, wires));
      auto form = parameter_server_form({workers, 4000, kAlpha, 1 / kRate, kGamma});
      const double expected = form.time(wires == 1 ? Wires::one : Wires::many).value;
      EXPECT_NEAR(play(network, algorithm, shape_of(algorithm, workers + 1, 1000), 4), expected, expected * 1e-9);
    }
  }
}

// The fast reader of shifts against the reader of every message, at any begins, sizes and speeds.
TEST(CollectiveTime, ShiftsEqualMessages) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks : {2, 5, 12}) {
      for (std::size_t count : {1, 4, 60, 67}) {
        const Call shape = shape_of(algorithm, ranks, count);
        if (algorithm.shared || !algorithm.plan(shape).shift) continue;
        for (bool mixed_nodes : {false, true}) {
          Cluster cluster = flat_cluster(ranks, 1e-6, 1e8, 1e-8, 1);
          cluster.nodes[0].inside.copy = 3e-9;
          if (mixed_nodes) {
            cluster.nodes.push_back(cluster.nodes[0]);
            cluster.nodes[0].count = 1;
            cluster.nodes[1].count = ranks - 1;
            cluster.nodes[1].inside.gamma = 5e-8;
            cluster.links.push_back({"slow", {3e-6, {}, 1e-7}, false});
            cluster.nodes[1].link = 1;
          }
          Network network(cluster);
          const auto begins = jitter(ranks, 2e-6, count);
          std::vector<double> fast, slow(begins.size());
          Traffic fast_traffic, slow_traffic;
          const Played a = by(Tier::max_plus, network, algorithm, shape, begins, fast, &fast_traffic);
          std::uint64_t seen = 0;
          const Played b = play_by(Tier::max_plus, network, algorithm, shape, 4, begins, slow, &slow_traffic,
                                   [&](const Message& message) {
                                     ++seen;
                                     EXPECT_GT(message.bytes, 0u);
                                     EXPECT_GE(message.end_s, message.begin_s);
                                   });
          for (int r = 0; r < ranks; ++r) EXPECT_NEAR(fast[r], slow[r], 1e-15) << where(algorithm, shape);
          EXPECT_EQ(a.messages, b.messages) << where(algorithm, shape);
          EXPECT_EQ(b.messages, seen);
          EXPECT_EQ(fast_traffic.messages, slow_traffic.messages);
          EXPECT_EQ(fast_traffic.bytes, slow_traffic.bytes) << where(algorithm, shape);
        }
      }
    }
  }
}

// On links that nobody shares, flows and max-plus say the same of every rank.
TEST(CollectiveTime, FlowsEqualMaxPlusWhereNothingIsShared) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared) continue;
    for (int ranks : {2, 6, 8, 9}) {
      for (std::size_t count : {2, 500}) {
        const Call shape = shape_of(algorithm, ranks, count);
        Cluster cluster = flat_cluster(ranks, 1e-6, 1e8, 1e-9, 0);
        cluster.nodes[0].inside.copy = 1e-9;
        Network network(cluster);
        const auto begins = jitter(ranks, 5e-6, count);
        std::vector<double> expected, ends;
        by(Tier::max_plus, network, algorithm, shape, begins, expected);
        by(Tier::flows, network, algorithm, shape, begins, ends);
        for (int r = 0; r < ranks; ++r)
          EXPECT_NEAR(ends[r], expected[r], expected[r] * 1e-9) << where(algorithm, shape);
      }
    }
  }
}

// A star's links are shared, but one message each way at a time shares them with nobody.
TEST(CollectiveTime, TheTierIsChosenByWhetherLinksAreShared) {
  const auto tier = [](const Network& network, const char* algorithm, int ranks) {
    const auto begins = jitter(ranks, 1e-3, 1);
    std::vector<double> ends(begins.size());
    const Algorithm& chosen = find_algorithm(Collective::all_reduce, algorithm);
    return play(network, chosen, shape_of(chosen, ranks, 6400), 4, begins, ends).tier;
  };
  Network star(wired(64, {"star"}, 1e-6, 1e9));
  EXPECT_EQ(tier(star, "ring", 64), Tier::max_plus);
  EXPECT_EQ(tier(star, "halving-doubling", 64), Tier::max_plus);
  EXPECT_EQ(tier(star, "naive", 64), Tier::flows);
  Network full(wired(64, {.kind = "fat-tree", .radix = 8}, 1e-6, 1e9));
  EXPECT_EQ(tier(full, "halving-doubling", 64), Tier::max_plus);
  Network thin(wired(64, {.kind = "fat-tree", .radix = 8, .levels = 2, .oversubscription = {4}}, 1e-6, 1e9));
  EXPECT_EQ(tier(thin, "halving-doubling", 64), Tier::flows);
  EXPECT_EQ(tier(thin, "ring", 64), Tier::max_plus) << "one message leaves each leaf at a time";
  Network ring(wired(64, {"ring"}, 1e-6, 1e9));
  EXPECT_EQ(tier(ring, "ring", 64), Tier::max_plus);
  EXPECT_EQ(tier(ring, "round-robin", 64), Tier::flows);
  Network flat(flat_cluster(64, 1e-6, 1e9));
  EXPECT_EQ(tier(flat, "naive", 64), Tier::max_plus);
  const Algorithm& algorithm = find_algorithm(Collective::all_reduce, "ring");
  std::vector<double> together(64), ends(64);
  EXPECT_EQ(play(flat, algorithm, shape_of(algorithm, 64, 6400), 4, together, ends).tier, Tier::closed_form);
}

// What max-plus is chosen for, flows confirm.
TEST(CollectiveTime, FlowsConfirmMaxPlusOnSharedLinks) {
  for (Wiring wiring :
       {Wiring{"star"}, Wiring{"ring"}, Wiring{.kind = "torus", .dims = {4, 4}}, Wiring{.kind = "fat-tree", .radix = 4},
        Wiring{.kind = "fat-tree", .radix = 4, .oversubscription = {4}}}) {
    Network network(wired(16, wiring, 1e-6, 1e8));
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.shared) continue;
      const Call shape = shape_of(algorithm, 16, 500);
      const auto begins = jitter(16, 5e-6, 3);
      std::vector<double> chosen(16), flows;
      if (play(network, algorithm, shape, 4, begins, chosen).tier != Tier::max_plus) continue;
      by(Tier::flows, network, algorithm, shape, begins, flows);
      for (int r = 0; r < 16; ++r)
        EXPECT_NEAR(flows[r], chosen[r], chosen[r] * 1e-9) << wiring.kind << where(algorithm, shape);
    }
  }
}

// Rates are 100 bytes a second and α is 0 in what follows; sizes are in bytes (elements of one byte).
double seconds(const Network& network, Collective what, const char* algorithm, std::size_t count) {
  return play(network, find_algorithm(what, algorithm), {what, 0, network.ranks(), 0, count, count}, 1);
}

TEST(CollectiveTime, IncastOnAStarByHand) {
  // Nine send 100 bytes each to the root, whose link takes 100 a second: 9 s. α overlaps.
  EXPECT_NEAR(seconds(Network(wired(10, {"star"})), Collective::gather, "flat", 100), 9, 1e-9);
  EXPECT_NEAR(seconds(Network(wired(10, {"star"}, 0.5)), Collective::gather, "flat", 100), 9.5, 1e-9);
  // One wire: one after the other, α each.
  Cluster one = wired(10, {"star"}, 0.5);
  one.nodes[0].wires = 1;
  EXPECT_NEAR(
      play(Network(one), find_algorithm(Collective::gather, "flat"), {Collective::gather, 0, 10, 0, 100, 100}, 1),
      9 * 1.5, 1e-9);
}

TEST(CollectiveTime, OversubscriptionByHand) {
  // 16 nodes, 4 under a leaf, 4:1: what a leaf sends on is 4·100/4 = 100 bytes a second.
  const Wiring thin{.kind = "fat-tree", .radix = 4, .levels = 2, .oversubscription = {4}};
  Network network(wired(16, thin));
  // Butterfly, 100 bytes: partners at 1 and 2 are under the same leaf: 1 s each. At 4 and 8 all four of a leaf go up:
  // each at 25: 4 s each.
  EXPECT_NEAR(seconds(network, Collective::all_reduce, "butterfly", 100), 1 + 1 + 4 + 4, 1e-9);
  // Halving-doubling, 1600 bytes: halves of 800 at 8 and 400 at 4 cross at 25: 32 + 16 s; 200 and 100 at 100: 2 + 1 s;
  // and the same back.
  EXPECT_NEAR(seconds(network, Collective::all_reduce, "halving-doubling", 1600), 2 * (32 + 16 + 2 + 1), 1e-8);
  // A ring crosses each leaf's link once: 30 rounds of 100 bytes at full rate.
  EXPECT_NEAR(seconds(network, Collective::all_reduce, "ring", 1600), 30, 1e-9);
  // Two oversubscriptions in a row: level 1 as above; level 2 carries 16·100/4/2 = 200 for 16 nodes, 12.5 each.
  Network deep(wired(64, {.kind = "fat-tree", .radix = 4, .levels = 3, .oversubscription = {4, 2}}));
  EXPECT_NEAR(seconds(deep, Collective::all_reduce, "butterfly", 100), 1 + 1 + 4 + 4 + 8 + 8, 1e-9);
}

TEST(CollectiveTime, WorkersOfANodeShareItsLink) {
  Cluster cluster = wired(2, {"star"});
  cluster.nodes[0].workers = 2;
  cluster.nodes[0].shares_memory = false;
  cluster.nodes[0].inside.message = {0, {}, 1e-6};
  // Ranks 0 and 1 on one node, 2 and 3 on the other. Butterfly of 100 bytes: inside 100 µs; then two messages each way
  // over one link: 2 s.
  EXPECT_NEAR(seconds(Network(cluster), Collective::all_reduce, "butterfly", 100), 1e-4 + 2, 1e-9);
  // On rails each has a link of its own: 1 s.
  cluster.wiring.kind = "rail";
  EXPECT_NEAR(seconds(Network(cluster), Collective::all_reduce, "butterfly", 100), 1e-4 + 1, 1e-9);
}

TEST(CollectiveTime, RingTopologyByHand) {
  // All-to-all by pairs on a ring of 4: at distance 1 and 3 neighbours, alone: 1 s each. At distance 2 all go the
  // ascending way, two on each link: 2 s.
  EXPECT_NEAR(seconds(Network(wired(4, {"ring"})), Collective::all_to_all, "round-robin", 100), 4, 1e-9);
}

TEST(CollectiveTime, SharedMemoryIsWhatPredictSays) {
  LinkModel model;
  Network network(host_cluster(4, model));
  EXPECT_TRUE(network.shares_memory());
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.shared) continue;
    const Call shape = shape_of(algorithm, 4, 5000);
    std::vector<double> begins{1, 2, 4, 3}, ends(4);
    const double expected = 4 + predict(algorithm, shape, DType::f32, model);
    play(network, algorithm, shape, 4, begins, ends);
    EXPECT_THAT(ends, testing::Each(testing::DoubleEq(expected)));
  }
  EXPECT_EQ(pick_algorithm(network, Collective::all_reduce, 100, 4, 4).name, "inline");
  EXPECT_EQ(pick_algorithm(network, Collective::all_reduce, 100000, 4, 4).name, "direct");
  Network apart(flat_cluster(4, 1e-5, 1e9));
  EXPECT_THROW(
      play(apart, find_algorithm(Collective::all_reduce, "direct"), {Collective::all_reduce, 0, 4, 0, 8, 8}, 4),
      ConfigError);
}

TEST(CollectiveTime, AutoPicksTheFastest) {
  Network network(flat_cluster(16, 1e-5, 1e9, kGamma));
  for (std::size_t count : {16, 4096, 1 << 20}) {
    const Algorithm& picked = pick_algorithm(network, Collective::all_reduce, count, 4, 16);
    const double best = play(network, picked, shape_of(picked, 16, count), 4);
    for (const Algorithm* other : algorithms_for(Collective::all_reduce)) {
      if (other->shared) continue;
      EXPECT_LE(best, play(network, *other, shape_of(*other, 16, count), 4) * (1 + 1e-9)) << other->name;
    }
    EXPECT_EQ(&pick_algorithm(network, Collective::all_reduce, count, 4, 16), &picked);
  }
}

TEST(CollectiveTime, FewerRanksOnTheirPlaces) {
  // Every fourth node of the thin tree: all under different leaves, nobody shares a link.
  Network all(wired(16, {.kind = "fat-tree", .radix = 4, .levels = 2, .oversubscription = {4}}));
  Network some = all.on({0, 4, 8, 12});
  EXPECT_EQ(some.ranks(), 4);
  EXPECT_NEAR(seconds(some, Collective::all_reduce, "butterfly", 100), 2, 1e-9);
  Traffic traffic;
  std::vector<double> times(4);
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  play(some, ring, {Collective::all_reduce, 0, 4, 0, 400, 400}, 1, times, times, &traffic);
  EXPECT_EQ(traffic.messages, 24u);
  EXPECT_EQ(some.topology().link_name(traffic.busiest(some)), "from node 0");
  EXPECT_NEAR(traffic.utilisation(some, traffic.busiest(some), times[0]), 1, 1e-9);
}

}  // namespace
}  // namespace trireme::cluster

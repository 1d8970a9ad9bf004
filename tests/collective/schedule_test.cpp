#include "trireme/collective/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/collective/recorded.h"
#include "trireme/base/error.h"

namespace trireme::test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Collective, NamesAreParsedInEverySpelling) {
  for (Collective what : kCollectives) EXPECT_EQ(parse_collective(name(what)), what);
  EXPECT_EQ(parse_collective("all_reduce"), Collective::all_reduce);
  EXPECT_EQ(parse_collective("allreduce"), Collective::all_reduce);
  EXPECT_EQ(parse_collective("alltoall"), Collective::all_to_all);
  EXPECT_THAT([] { parse_collective("all-produce"); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("unknown collective 'all-produce'; did you mean all-reduce? there are: broadcast,")));
  EXPECT_THROW(parse_collective(""), ConfigError);
}

TEST(Algorithms, EveryCollectiveHasSharedMessageAndCanonicalOnes) {
  for (Collective what : kCollectives) {
    std::set<std::string_view> names;
    bool by_messages = false, canonical_by_messages = false;
    for (const Algorithm* algorithm : algorithms_for(what)) {
      EXPECT_EQ(algorithm->what, what);
      EXPECT_TRUE(names.insert(algorithm->name).second) << algorithm->name << " is listed twice";
      EXPECT_EQ(&find_algorithm(what, algorithm->name), algorithm);
      EXPECT_FALSE(algorithm->summary.empty());
      by_messages |= !algorithm->shared;
      canonical_by_messages |= !algorithm->shared && algorithm->canonical;
    }
    for (std::string_view shared : {"direct", "inline", "staged"}) EXPECT_TRUE(names.contains(shared)) << name(what);
    EXPECT_TRUE(by_messages && canonical_by_messages) << name(what);
  }
}

TEST(Algorithms, AnUnknownNameListsThoseThereAre) {
  EXPECT_EQ(find_algorithm(Collective::all_reduce, "halving_doubling").name, "halving-doubling");
  EXPECT_THAT(
      [] { find_algorithm(Collective::barrier, "ring"); },
      ThrowsMessage<ConfigError>(HasSubstr("no algorithm 'ring' for barrier; there are: direct, inline, staged, "
                                           "dissemination, tree")));
}

TEST(Schedule, ThenRunsOneAfterTheOther) {
  const auto marked = [](int peer, int rounds, std::size_t scratch) {
    Schedule made;
    made.rounds = rounds;
    made.scratch = scratch;
    made.fill = [peer](int k, Round& out) { out.push_back({StepKind::send, 10 * peer + k, {}, {}}); };
    return made;
  };
  const Schedule both = then(marked(1, 2, 5), marked(2, 1, 3));
  EXPECT_EQ(both.rounds, 3);
  EXPECT_EQ(both.scratch, 5u);
  EXPECT_EQ(both.round(0)[0].peer, 10);
  EXPECT_EQ(both.round(1)[0].peer, 11);
  EXPECT_EQ(both.round(2)[0].peer, 20);
}

TEST(Schedule, PartsCoverTheVector) {
  for (std::size_t count : {0, 1, 6, 7, 100})
    for (int parts : {1, 2, 7, 11}) {
      const Parts cut{count, parts};
      EXPECT_EQ(cut.offset(0), 0u);
      EXPECT_EQ(cut.offset(parts), count);
      for (int i = 0; i < parts; ++i) EXPECT_LE(cut.size(0) - cut.size(i), 1u);
    }
}

struct Traffic {
  int rounds = 0;             // that move anything between ranks
  std::size_t most_sent = 0;  // elements, by the rank that sends most
  std::size_t sent = 0;       // elements, by all
  std::size_t most_wires = 0;
};

Traffic traffic_of(std::string_view algorithm, Collective what, int ranks, std::size_t count) {
  const Recorded recorded = record(find_algorithm(what, algorithm), {what, 0, ranks, 0, count, count});
  Traffic traffic;
  std::set<std::size_t> busy;
  for (const auto& rounds : recorded.rounds) {
    std::size_t sent = 0;
    std::set<int> peers;
    for (std::size_t k = 0; k < rounds.size(); ++k)
      for (const Step& step : rounds[k]) {
        if (is_local(step)) continue;
        busy.insert(k);
        peers.insert(step.peer);
        if (step.kind == StepKind::send) sent += step.from.count;
      }
    traffic.sent += sent;
    traffic.most_sent = std::max(traffic.most_sent, sent);
    traffic.most_wires = std::max(traffic.most_wires, peers.size());
  }
  traffic.rounds = static_cast<int>(busy.size());
  return traffic;
}

int ceil_log2(int n) {
  int levels = 0;
  for (; (1 << levels) < n; ++levels) continue;
  return levels;
}

TEST(Traffic, BandwidthOptimalAllReducesSendTheMinimum) {
  for (int P : {2, 3, 4, 7, 8, 12, 16}) {
    const std::size_t n = 10 * P;
    for (std::string_view algorithm : {"ring", "round-robin", "canonical", "circulant", "halving-doubling"}) {
      if (algorithm == "halving-doubling" && (P & (P - 1)) != 0) continue;
      const Traffic traffic = traffic_of(algorithm, Collective::all_reduce, P, n);
      const bool logarithmic = algorithm == "circulant" || algorithm == "halving-doubling";
      EXPECT_EQ(traffic.most_sent, 2 * n * (P - 1) / P) << algorithm << " " << P;
      EXPECT_EQ(traffic.sent, 2 * n * (P - 1)) << algorithm << " " << P;
      EXPECT_EQ(traffic.rounds, logarithmic ? 2 * ceil_log2(P) : 2 * (P - 1)) << algorithm << " " << P;
    }
  }
}

TEST(Traffic, OtherAllReducesSendWhatTheirFormulasSay) {
  for (int P : {2, 3, 4, 7, 8, 13, 16}) {
    const std::size_t n = 24, all = static_cast<std::size_t>(P);
    const bool is_power = (P & (P - 1)) == 0;
    const auto of = [&](std::string_view algorithm) { return traffic_of(algorithm, Collective::all_reduce, P, n); };
    EXPECT_EQ(of("naive").rounds, 1);
    EXPECT_EQ(of("naive").sent, all * (all - 1) * n);
    EXPECT_EQ(of("naive").most_wires, all - 1);
    EXPECT_EQ(of("master-worker").rounds, 2);
    EXPECT_EQ(of("master-worker").sent, 2 * (all - 1) * n);
    EXPECT_EQ(of("tree").sent, 2 * (all - 1) * n);
    EXPECT_EQ(of("tree").rounds, 2 * (ceil_log2(P + 1) - 1));
    EXPECT_LE(of("tree").most_wires, 3u);
    EXPECT_EQ(of("double-tree").sent, 2 * (all - 1) * n);
    EXPECT_EQ(of("double-tree").rounds, 2 * ceil_log2(P));
    EXPECT_EQ(of("mst").rounds, 2 * ceil_log2(P));
    EXPECT_EQ(of("mst").sent, 2 * (all - 1) * n);
    if (is_power) {
      EXPECT_EQ(of("butterfly").sent, all * ceil_log2(P) * n);
      EXPECT_EQ(of("butterfly").rounds, ceil_log2(P));
    }
  }
}

TEST(Traffic, DoubleTreeHasEachRankInsideOnlyOneTree) {
  for (int P : {2, 4, 5, 7, 8, 16, 17}) {
    const Algorithm& algorithm = find_algorithm(Collective::all_reduce, "double-tree");
    const Recorded recorded = record(algorithm, {Collective::all_reduce, 0, P, 0, 2, 2});
    for (int rank = 0; rank < P; ++rank) {
      std::set<std::size_t> inner;  // trees, told by their half of the vector, in which the rank has a child
      for (int k = 0; k < static_cast<int>(recorded.rounds[rank].size()) / 2; ++k)
        for (const Step& step : recorded.rounds[rank][k])
          if (is_receive(step)) inner.insert(step.to.offset);
      EXPECT_LE(inner.size(), rank == 0 && P % 2 == 1 ? 2u : 1u) << P << " ranks, rank " << rank;
    }
  }
}

TEST(Traffic, ComposedAndSpanningTreesMatchTheirFormulas) {
  using enum Collective;
  for (int P : {2, 4, 5, 8, 11, 16}) {
    const int levels = ceil_log2(P);
    const std::size_t n = 3 * P, block = 3, all = static_cast<std::size_t>(P);
    EXPECT_EQ(traffic_of("mst", broadcast, P, n).rounds, levels);
    EXPECT_EQ(traffic_of("mst", broadcast, P, n).sent, (all - 1) * n);
    EXPECT_EQ(traffic_of("mst", reduce, P, n).rounds, levels);
    EXPECT_EQ(traffic_of("mst", scatter, P, block).rounds, levels);
    EXPECT_EQ(traffic_of("mst", scatter, P, block).most_sent, (all - 1) * block);
    EXPECT_EQ(traffic_of("mst", gather, P, block).rounds, levels);
    EXPECT_EQ(traffic_of("scatter-all-gather", broadcast, P, n).rounds, levels + P - 1);
    EXPECT_EQ(traffic_of("reduce-scatter-gather", reduce, P, n).rounds, levels + P - 1);
    EXPECT_EQ(traffic_of("gather-broadcast", all_gather, P, block).rounds, 2 * levels);
    EXPECT_EQ(traffic_of("reduce-scatter-composed", reduce_scatter, P, block).rounds, 2 * levels);
    for (std::string_view algorithm : {"ring", "circulant"}) {
      const int rounds = algorithm == "ring" ? P - 1 : levels;
      EXPECT_EQ(traffic_of(algorithm, all_gather, P, block).rounds, rounds);
      EXPECT_EQ(traffic_of(algorithm, all_gather, P, block).most_sent, (all - 1) * block);
      EXPECT_EQ(traffic_of(algorithm, reduce_scatter, P, block).rounds, rounds);
      EXPECT_EQ(traffic_of(algorithm, reduce_scatter, P, block).most_sent, (all - 1) * block);
    }
    EXPECT_EQ(traffic_of("bruck", all_to_all, P, block).rounds, levels);
    EXPECT_EQ(traffic_of("dissemination", barrier, P, 0).rounds, levels);
  }
}

// Peers cannot read each other's buffers there.
TEST(Shared, InlineAndStagedTouchOnlyStagesOfPeers) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name != "inline" && algorithm.name != "staged") continue;
    for (int P : {1, 2, 5}) {
      const Recorded recorded = record(algorithm, {algorithm.what, 0, P, P / 2, 7, 9});
      for (int rank = 0; rank < P; ++rank)
        for (const Round& round : recorded.rounds[rank])
          for (const Step& step : round) {
            if (is_local(step)) continue;
            EXPECT_EQ(step.from.buffer, Buffer::stage) << name(algorithm.what) << " " << algorithm.name;
            EXPECT_TRUE(step.kind == StepKind::read || step.peer == rank) << name(algorithm.what);
          }
      EXPECT_LE(recorded.rounds[0].size(), 4u);
      EXPECT_LE(recorded.stage[0], 2u * 7 * (has_blocks(algorithm.what) ? P : 1));
    }
  }
}

// The floor of an all-reduce in shared memory.
TEST(Shared, DirectReadsEachInputOnceAndWritesEachOutputOnce) {
  const int P = 5;
  const std::size_t n = 23;
  const Recorded recorded =
      record(find_algorithm(Collective::all_reduce, "direct"), {Collective::all_reduce, 0, P, 0, n, n});
  std::size_t elements = 0;
  for (const auto& rounds : recorded.rounds) {
    ASSERT_EQ(rounds.size(), 1u);
    for (const Step& step : rounds[0]) {
      EXPECT_EQ(step.kind, StepKind::reduce_from);
      EXPECT_EQ(step.peer, kEveryone);
      elements += step.to.count;
    }
  }
  EXPECT_EQ(elements, n);
}

TEST(Schedule, TenThousandRanksCostNoMemory) {
  for (const Algorithm& algorithm : algorithms()) {
    const int P = 10000;
    const Schedule schedule = algorithm.plan({algorithm.what, 4321, P, 17, 1000, 1000});
    if (has_blocks(algorithm.what) || algorithm.shared || algorithm.name == "naive") continue;  // P steps in a round
    for (int k : {0, schedule.rounds / 2, schedule.rounds - 1})
      EXPECT_LE(schedule.round(k).size(), 8u) << algorithm.name;
  }
}

}  // namespace
}  // namespace trireme::test

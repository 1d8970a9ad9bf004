// Fair shares and flows in time: against a plain solution of the whole and against cases worked out by hand.
#include "trireme/cluster/sim/flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "trireme/base/mix.h"

namespace trireme::cluster {
namespace {

// Every flow that there is, solved at once by raising all rates together.
struct Plain {
  std::vector<double> capacities;
  std::vector<std::vector<int>> links;  // by flow
  std::vector<double> limits;

  std::vector<double> rates() const {
    std::vector<double> rate(links.size(), 0.0), left = capacities;
    std::vector<bool> open(links.size(), true);
    for (;;) {
      std::vector<int> users(left.size(), 0);
      for (std::size_t f = 0; f < links.size(); ++f) {
        if (!open[f]) continue;
        for (int link : links[f]) ++users[link];
      }
      double step = std::numeric_limits<double>::infinity();
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (users[l] > 0) step = std::min(step, left[l] / users[l]);
      }
      for (std::size_t f = 0; f < links.size(); ++f) {
        if (open[f]) step = std::min(step, limits[f] - rate[f]);
      }
      if (step == std::numeric_limits<double>::infinity()) return rate;
      for (std::size_t f = 0; f < links.size(); ++f) {
        if (!open[f]) continue;
        rate[f] += step;
        for (int link : links[f]) left[link] -= step;
      }
      for (std::size_t f = 0; f < links.size(); ++f) {
        bool ends = rate[f] >= limits[f] * (1 - 1e-12);
        for (int link : links[f]) ends |= left[link] <= capacities[link] * 1e-12;
        if (ends) open[f] = false;
      }
    }
  }
};

// Flows come and go at random; after each change all rates are those of the plain solution.
TEST(Flows, SolvingWhatIsAffectedIsSolvingAll) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::uint64_t state = seed * 1'000'003;
    const auto draw = [&](int below) { return static_cast<int>(mixed(++state) % static_cast<std::uint64_t>(below)); };
    const int links = 3 + draw(10);
    Plain plain;
    for (int l = 0; l < links; ++l) plain.capacities.push_back(1 + draw(8));
    FairShare shares(plain.capacities);
    std::vector<int> ids;  // by flow of plain
    for (int change = 0; change < 150; ++change) {
      for (int batch = 1 + draw(3); batch > 0; --batch) {
        if (!ids.empty() && draw(5) < 2) {
          const auto gone = static_cast<std::size_t>(draw(static_cast<int>(ids.size())));
          shares.remove(ids[gone]);
          ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(gone));
          plain.links.erase(plain.links.begin() + static_cast<std::ptrdiff_t>(gone));
          plain.limits.erase(plain.limits.begin() + static_cast<std::ptrdiff_t>(gone));
          continue;
        }
        std::vector<int> route;
        for (int l = 0; l < links; ++l) {
          if (draw(links) < 2) route.push_back(l);
        }
        if (route.empty()) route.push_back(draw(links));
        const double limit = draw(3) == 0 ? 0.25 * (1 + draw(8)) : 1e9;
        ids.push_back(shares.add(route, limit));
        plain.links.push_back(route);
        plain.limits.push_back(limit);
      }
      shares.solve();
      const auto expected = plain.rates();
      for (std::size_t f = 0; f < ids.size(); ++f) {
        ASSERT_NEAR(shares.rate(ids[f]), expected[f], 1e-9) << "seed " << seed << " change " << change << " flow " << f;
      }
    }
  }
}

TEST(Flows, ReportsOnlyRatesThatChanged) {
  FairShare shares({10, 10, 10});
  const int a = shares.add(std::vector{0}, 1e9), b = shares.add(std::vector{1}, 1e9);
  EXPECT_THAT(shares.solve(), testing::UnorderedElementsAre(a, b));
  const int c = shares.add(std::vector{1, 2}, 1e9);
  EXPECT_THAT(shares.solve(), testing::UnorderedElementsAre(b, c));
  EXPECT_DOUBLE_EQ(shares.rate(a), 10);
  EXPECT_DOUBLE_EQ(shares.rate(b), 5);
  shares.remove(b);
  EXPECT_THAT(shares.solve(), testing::ElementsAre(c));
  EXPECT_DOUBLE_EQ(shares.rate(c), 10);
  EXPECT_THAT(shares.solve(), testing::IsEmpty());
}

Cluster star(int nodes, double alpha, int wires) {
  Cluster cluster = flat_cluster(nodes, alpha, 100, 0, wires);
  cluster.links[0].shared = true;
  cluster.wiring.kind = "star";
  return cluster;
}

struct End {
  int id;
  double at;
};

std::vector<End> all_ends(Flows& flows) {
  std::vector<End> ends;
  std::vector<int> ended;
  while (flows.next() < std::numeric_limits<double>::infinity()) {
    ended.clear();
    flows.step(ended);
    for (int id : ended) ends.push_back({id, flows.now()});
  }
  std::ranges::sort(ends, {}, &End::id);
  return ends;
}

TEST(Flows, TwoIntoOneByHand) {
  // 100 bytes a second. A starts at 0 with 100 bytes, B at 0.5 with 100: alone until 0.5 A has moved 50; then 50 each.
  // A's other 50 take 1 s: 1.5. B has moved 50 by then and goes on alone: 2.0.
  Flows flows(Network(star(3, 0, 0)));
  flows.start(0, 0, 2, 100, 0);
  flows.start(0.5, 1, 2, 100, 1);
  const auto ends = all_ends(flows);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_NEAR(ends[0].at, 1.5, 1e-12);
  EXPECT_NEAR(ends[1].at, 2.0, 1e-12);
}

TEST(Flows, MaxMinByHand) {
  // 0→2 and 1→2 share the way to 2, 50 each; 0→3 shares the way out of 0 and gets the other 50.
  // 3→1 meets nobody: 100.
  Flows flows(Network(star(4, 0, 0)));
  flows.start(0, 0, 2, 100, 0);
  flows.start(0, 1, 2, 100, 1);
  flows.start(0, 0, 3, 100, 2);
  flows.start(0, 3, 1, 100, 3);
  const auto ends = all_ends(flows);
  ASSERT_EQ(ends.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(ends[i].at, 2, 1e-12);
  EXPECT_NEAR(ends[3].at, 1, 1e-12);
}

TEST(Flows, LatencyComesFirstAndUsesNothing) {
  Flows flows(Network(star(3, 1, 0)));
  flows.start(0, 0, 2, 100, 0);
  flows.start(1, 1, 2, 0, 1);    // nothing but latency
  flows.start(1, 1, 2, 100, 2);  // begins to flow when the first has ended
  const auto ends = all_ends(flows);
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_NEAR(ends[0].at, 2, 1e-12);
  EXPECT_NEAR(ends[1].at, 2, 1e-12);
  EXPECT_NEAR(ends[2].at, 3, 1e-12);
}

TEST(Flows, WiresAreTakenInTurn) {
  // One wire: 1→0, 2→0 and 3→0 of 1.5 s each follow each other; 0→1 goes the other way meanwhile.
  Flows flows(Network(star(4, 0.5, 1)));
  for (int i = 0; i < 3; ++i) flows.start(0, i + 1, 0, 100, i);
  flows.start(0, 0, 1, 100, 3);
  auto ends = all_ends(flows);
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_NEAR(ends[0].at, 1.5, 1e-12);
  EXPECT_NEAR(ends[1].at, 3, 1e-12);
  EXPECT_NEAR(ends[2].at, 4.5, 1e-12);
  EXPECT_NEAR(ends[3].at, 1.5, 1e-12);
  // Two wires of a link that is shared: two at half the rate, then the third.
  Flows two(Network(star(4, 0, 2)));
  for (int i = 0; i < 3; ++i) two.start(0, i + 1, 0, 100, i);
  ends = all_ends(two);
  EXPECT_NEAR(ends[0].at, 2, 1e-12);
  EXPECT_NEAR(ends[1].at, 2, 1e-12);
  EXPECT_NEAR(ends[2].at, 3, 1e-12);
}

TEST(Flows, CurvesBoundTheRateOfAMessage) {
  // 1000 bytes take 20 s alone by the curve, though the link carries 100 a second: two of them do not meet.
  Cluster cluster = star(3, 0, 0);
  cluster.links[0].message = {0, {{1000, 20}}, 1e-2};
  Flows flows{Network(cluster)};
  flows.start(0, 0, 2, 1000, 0);
  flows.start(0, 1, 2, 1000, 1);
  for (const End& end : all_ends(flows)) EXPECT_NEAR(end.at, 20, 1e-9);
}

}  // namespace
}  // namespace trireme::cluster

// Mixing matrices of all graphs and many sizes.
#include "trireme/sync/strategies/graph.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <set>

namespace trireme::sync {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 33};
constexpr std::int64_t kSteps = 12;

Matrix zeros(int n) { return Matrix(static_cast<std::size_t>(n), std::vector<double>(static_cast<std::size_t>(n))); }

// For every graph, size and step.
template <typename Body>
void for_all(int peers, Body&& body) {
  for (auto name : shape_names()) {
    for (int n : kSizes) {
      const Graph graph(parse_shape(name), n, 42, peers);
      for (std::int64_t step = 0; step < kSteps; ++step) {
        SCOPED_TRACE(std::string(name) + " of " + std::to_string(n) + ", step " + std::to_string(step));
        body(graph, step);
      }
    }
  }
}

Matrix symmetric(const Graph& graph, std::int64_t step) {
  auto w = zeros(graph.ranks());
  for (int i = 0; i < graph.ranks(); ++i) {
    auto& row = w[static_cast<std::size_t>(i)];
    row[static_cast<std::size_t>(i)] = 1;
    for (int j : graph.neighbours(i, step)) {
      row[static_cast<std::size_t>(j)] = graph.weight(i, j, step);
      row[static_cast<std::size_t>(i)] -= graph.weight(i, j, step);
    }
  }
  return w;
}

// P[i][j]: what j gives to i.
Matrix pushing(const Graph& graph, std::int64_t step) {
  auto p = zeros(graph.ranks());
  for (int j = 0; j < graph.ranks(); ++j) {
    p[static_cast<std::size_t>(j)][static_cast<std::size_t>(j)] = graph.share(j, step);
    for (int i : graph.targets(j, step)) {
      p[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = graph.share(j, step);
    }
  }
  return p;
}

std::vector<double> times(const Matrix& m, const std::vector<double>& v) {
  std::vector<double> result;
  for (const auto& row : m) result.push_back(std::inner_product(row.begin(), row.end(), v.begin(), 0.0));
  return result;
}

double spread(const std::vector<double>& v) {
  const auto [least, most] = std::minmax_element(v.begin(), v.end());
  return *most - *least;
}

TEST(Graph, MatricesAreDoublyStochasticAndSymmetric) {
  for_all(1, [](const Graph& graph, std::int64_t step) {
    const auto w = symmetric(graph, step);
    for (std::size_t i = 0; i < w.size(); ++i) {
      double row = 0, column = 0;
      for (std::size_t j = 0; j < w.size(); ++j) {
        ASSERT_GE(w[i][j], 0);
        ASSERT_EQ(w[i][j], w[j][i]);
        row += w[i][j];
        column += w[j][i];
      }
      ASSERT_NEAR(row, 1, 1e-12);
      ASSERT_NEAR(column, 1, 1e-12);
      ASSERT_GT(w[i][i], 0);
    }
  });
}

TEST(Graph, PushingIsColumnStochasticAndSourcesMirrorTargets) {
  for (int peers : {1, 2, 3}) {
    for_all(peers, [](const Graph& graph, std::int64_t step) {
      const auto p = pushing(graph, step);
      for (std::size_t j = 0; j < p.size(); ++j) {
        double column = 0;
        std::vector<int> sources;
        for (std::size_t i = 0; i < p.size(); ++i) {
          column += p[i][j];
          if (i != j && p[j][i] > 0) sources.push_back(static_cast<int>(i));
        }
        ASSERT_NEAR(column, 1, 1e-12);
        ASSERT_EQ(graph.sources(static_cast<int>(j), step), sources);
      }
    });
  }
}

// Values that differ at first: their mean stays, and they come together.
TEST(Graph, GossipReachesTheMean) {
  for (auto name : shape_names()) {
    for (int n : {2, 3, 4, 7, 8, 16}) {
      const Graph graph(parse_shape(name), n, 5);
      std::vector<double> x(static_cast<std::size_t>(n));
      std::iota(x.begin(), x.end(), 0.0);
      for (std::int64_t step = 0; step < 400; ++step) {
        x = times(symmetric(graph, step), x);
        ASSERT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / n, (n - 1) / 2.0, 1e-9);
      }
      EXPECT_LT(spread(x), 1e-3) << name << " of " << n;
    }
  }
}

TEST(Graph, PushSumKeepsItsWeightsAndReachesTheMean) {
  for (auto name : shape_names()) {
    for (int n : {1, 2, 3, 4, 7, 8, 16}) {
      const Graph graph(parse_shape(name), n, 5);
      std::vector<double> x(static_cast<std::size_t>(n)), w(x.size(), 1.0);
      std::iota(x.begin(), x.end(), 0.0);
      for (std::int64_t step = 0; step < 800; ++step) {
        const auto p = pushing(graph, step);
        x = times(p, x);
        w = times(p, w);
        ASSERT_NEAR(std::accumulate(w.begin(), w.end(), 0.0), n, 1e-9);
      }
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i] / w[i], (n - 1) / 2.0, 1e-3) << name << " of " << n;
    }
  }
}

// One-peer exponential averages exactly in log₂ n steps where n is a power of two.
TEST(Graph, OnePeerExponentialIsExact) {
  const Graph graph(Shape::exponential, 8, 1);
  std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t step = 0; step < 3; ++step) x = times(pushing(graph, step), x);
  for (double value : x) EXPECT_DOUBLE_EQ(value, 3.5);
}

TEST(Graph, RandomDependsOnStepAndSeed) {
  std::set<std::vector<int>> seen;
  for (std::int64_t step = 0; step < 20; ++step) seen.insert(Graph(Shape::random, 9, 1).neighbours(0, step));
  EXPECT_GT(seen.size(), 4u);
  int differ = 0;
  for (std::int64_t step = 0; step < 20; ++step) {
    differ += Graph(Shape::random, 9, 1).targets(0, step) != Graph(Shape::random, 9, 2).targets(0, step);
    EXPECT_EQ(Graph(Shape::random, 9, 1).targets(3, step), Graph(Shape::random, 9, 1).targets(3, step));
  }
  EXPECT_GT(differ, 5);
}

TEST(Graph, EveryActiveRankHasAPassivePartner) {
  for (auto name : shape_names()) {
    for (int n : kSizes) {
      const Graph graph(parse_shape(name), n, 1);
      std::set<int> asked;
      for (int rank = 0; rank < n; ++rank) {
        if (!Graph::active(rank)) continue;
        const auto partners = graph.partners(rank);
        EXPECT_EQ(partners.empty(), n == 1) << name << " of " << n;
        for (int partner : partners) EXPECT_FALSE(Graph::active(partner));
        asked.insert(partners.begin(), partners.end());
      }
      EXPECT_EQ(asked.size(), static_cast<std::size_t>(n / 2)) << name << " of " << n;  // every passive one is asked
    }
  }
}

}  // namespace
}  // namespace trireme::sync

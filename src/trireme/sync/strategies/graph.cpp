#include "trireme/sync/strategies/graph.h"

#include <algorithm>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/base/mix.h"

namespace trireme::sync {
namespace {

constexpr std::string_view kNames[] = {"ring", "exponential", "random", "full"};

std::vector<int> others(int rank, int ranks) {
  std::vector<int> result;
  for (int other = 0; other < ranks; ++other) {
    if (other != rank) result.push_back(other);
  }
  return result;
}

}  // namespace

std::vector<std::string_view> shape_names() { return {std::begin(kNames), std::end(kNames)}; }

Shape parse_shape(std::string_view name) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), name);
  TRIREME_CHECK(at != std::end(kNames));
  return static_cast<Shape>(at - std::begin(kNames));
}

std::uint64_t draw(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mixed(mixed(mixed(seed + a) + b) + c);
}

Graph::Graph(Shape shape, int ranks, std::uint64_t seed, int peers)
    : shape_(shape), ranks_(ranks), seed_(seed), peers_(peers) {
  for (int hop = 1; hop < ranks; hop *= 2) hops_.push_back(hop);
}

std::vector<int> Graph::at_distances(int rank, const std::vector<int>& distances, bool both_ways) const {
  std::vector<int> result;
  for (int distance : distances) {
    const int far = distance % ranks_;
    result.push_back((rank + far) % ranks_);
    if (both_ways) result.push_back((rank + ranks_ - far) % ranks_);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  std::erase(result, rank);
  return result;
}

// ---- Undirected ----

// The ranks in an order drawn for the step, two by two.
std::vector<int> Graph::matched(int rank, std::int64_t step) const {
  std::vector<int> order(static_cast<std::size_t>(ranks_));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[draw(seed_, static_cast<std::uint64_t>(step), i) % i]);
  }
  const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), rank) - order.begin());
  const auto partner = place ^ 1;
  return partner < order.size() ? std::vector{order[partner]} : std::vector<int>{};
}

std::vector<int> Graph::neighbours(int rank, std::int64_t step) const {
  switch (shape_) {
    case Shape::ring:
      return at_distances(rank, {1}, true);
    case Shape::exponential:
      return at_distances(rank, hops_, true);
    case Shape::random:
      return matched(rank, step);
    case Shape::full:
      break;
  }
  return others(rank, ranks_);
}

double Graph::weight(int i, int j, std::int64_t step) const {
  return 1.0 / (1.0 + static_cast<double>(std::max(neighbours(i, step).size(), neighbours(j, step).size())));
}

// ---- Directed ----

std::vector<int> Graph::drawn(int rank, std::int64_t step) const {
  auto candidates = others(rank, ranks_);
  const auto wanted = std::min(static_cast<std::size_t>(peers_), candidates.size());
  for (std::size_t k = 0; k < wanted; ++k) {
    const auto random = draw(seed_, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank), k);
    std::swap(candidates[k], candidates[k + random % (candidates.size() - k)]);
  }
  candidates.resize(wanted);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

std::vector<int> Graph::targets(int rank, std::int64_t step) const {
  switch (shape_) {
    case Shape::ring:
      return at_distances(rank, {1}, false);
    case Shape::exponential: {
      std::vector<int> distances;
      for (int k = 0; k < peers_ && static_cast<std::size_t>(k) < hops_.size(); ++k) {
        distances.push_back(hops_[static_cast<std::size_t>(step + k) % hops_.size()]);
      }
      return at_distances(rank, distances, false);
    }
    case Shape::random:
      return drawn(rank, step);
    case Shape::full:
      break;
  }
  return others(rank, ranks_);
}

std::vector<int> Graph::sources(int rank, std::int64_t step) const {
  std::vector<int> result;
  for (int other : others(rank, ranks_)) {
    const auto theirs = targets(other, step);
    if (std::find(theirs.begin(), theirs.end(), rank) != theirs.end()) result.push_back(other);
  }
  return result;
}

double Graph::share(int rank, std::int64_t step) const {
  return 1.0 / (1.0 + static_cast<double>(targets(rank, step).size()));
}

// ---- Between sides ----

std::vector<int> Graph::partners(int rank) const {
  std::vector<int> result;
  if (shape_ == Shape::ring) {
    result = at_distances(rank, {1}, true);
  } else if (shape_ == Shape::exponential) {
    std::vector<int> odd;  // 1, 3, 7, …: distances that change sides
    for (int hop : hops_) odd.push_back(2 * hop - 1);
    result = at_distances(rank, odd, true);
  } else {
    result = others(rank, ranks_);
  }
  std::erase_if(result, [&](int other) { return active(other) == active(rank); });
  return result;
}

}  // namespace trireme::sync

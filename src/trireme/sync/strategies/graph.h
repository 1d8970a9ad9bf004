// Who gossips with whom. Pure functions of rank and step, the same on every rank, so that nobody needs to be told.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace trireme::sync {

enum class Shape {
  ring,         // the ranks before and after
  exponential,  // those 1, 2, 4, … away
  random,       // drawn anew at each step from the seed
  full,         // everyone
};
std::vector<std::string_view> shape_names();
Shape parse_shape(std::string_view name);

// A number drawn for each (seed, a, b, c): the same everywhere.
std::uint64_t draw(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);

class Graph {
 public:
  // `peers`: how many a rank pushes to at each step, on exponential and random graphs.
  Graph(Shape shape, int ranks, std::uint64_t seed, int peers = 1);
  int ranks() const { return ranks_; }

  // Undirected: ranks that average with each other at this step; ascending, without `rank`. On a random graph a
  // matching: one neighbour, or none where the ranks are odd.
  std::vector<int> neighbours(int rank, std::int64_t step) const;
  // Metropolis–Hastings: what neighbours i and j give each other; symmetric. What remains of 1 is a rank's own. The
  // matrix is doubly stochastic whatever the graph.
  double weight(int i, int j, std::int64_t step) const;

  // Directed: whom `rank` pushes to, and who pushes to it; without `rank`. On an exponential graph one distance after
  // the other, on a random one whom each rank draws.
  std::vector<int> targets(int rank, std::int64_t step) const;
  std::vector<int> sources(int rank, std::int64_t step) const;
  // What a rank gives each of its targets and keeps: its column of the matrix sums to 1.
  double share(int rank, std::int64_t step) const;

  // Between sides: even ranks are active and ask, odd ones are passive and answer, so no circle can wait for itself.
  static bool active(int rank) { return rank % 2 == 0; }
  // An active rank's passive neighbours: at least one, unless it is alone. On a random graph as on a full one, all.
  std::vector<int> partners(int rank) const;

 private:
  std::vector<int> at_distances(int rank, const std::vector<int>& distances, bool both_ways) const;
  std::vector<int> matched(int rank, std::int64_t step) const;
  std::vector<int> drawn(int rank, std::int64_t step) const;

  const Shape shape_;
  const int ranks_;
  const std::uint64_t seed_;
  const int peers_;
  std::vector<int> hops_;  // 1, 2, 4, … below the number of ranks
};

}  // namespace trireme::sync

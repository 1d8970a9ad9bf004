// The list of algorithms. A new one is a file and a line here; it then shows up in --help, the checker, the
// conformance tests, the cost table and the benchmark.
#include "trireme/collective/schedules/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme {

namespace {

using enum Collective;
using namespace schedules;

constexpr bool kShared = true, kMessages = false;
// Moves sum nothing, so their result never depends on the choice.
// Moves the whole vector in every round, so long ones go in segments.
constexpr bool kPipelined = true;
constexpr bool kCanonical = true, kAnyOrder = false, kMoves = true;

constexpr std::string_view kDirect =
    "straight between the ranks' buffers: each input read once, each output written once";
constexpr std::string_view kInline = "through small slots, one synchronization: for short messages";
constexpr std::string_view kStaged = "through shared stages, in cache-sized pieces: for buffers that peers cannot read";
constexpr std::string_view kSynchronize = "ranks meet in shared memory";

constexpr std::array kAlgorithms{
    // what, name, summary, shared, canonical, pattern, plan
    Algorithm{broadcast, "direct", kDirect, kShared, kMoves, Pattern::direct, direct},
    Algorithm{broadcast, "inline", kInline, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{broadcast, "staged", kStaged, kShared, kMoves, Pattern::stages, staged},
    Algorithm{broadcast, "mst", "down a minimum spanning tree: ⌈log2 P⌉ rounds of the whole vector", kMessages, kMoves,
              Pattern::spanning, mst_broadcast, kPipelined},
    Algorithm{broadcast, "flat", "the root sends to everyone at once", kMessages, kMoves, Pattern::other,
              flat_broadcast},
    Algorithm{broadcast, "tree", "down a binary tree", kMessages, kMoves, Pattern::tree, tree_broadcast, kPipelined},
    Algorithm{broadcast, "scatter-all-gather",
              "scatter down a spanning tree, then all-gather round a ring: for long vectors", kMessages, kMoves,
              Pattern::composed, scatter_all_gather_broadcast},

    Algorithm{scatter, "direct", kDirect, kShared, kMoves, Pattern::direct, direct},
    Algorithm{scatter, "inline", kInline, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{scatter, "staged", kStaged, kShared, kMoves, Pattern::stages, staged},
    Algorithm{scatter, "mst", "halves go down a minimum spanning tree in ⌈log2 P⌉ rounds", kMessages, kMoves,
              Pattern::spanning, mst_scatter},
    Algorithm{scatter, "flat", "the root sends each block at once", kMessages, kMoves, Pattern::other, flat_scatter},

    Algorithm{gather, "direct", kDirect, kShared, kMoves, Pattern::direct, direct},
    Algorithm{gather, "inline", kInline, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{gather, "staged", kStaged, kShared, kMoves, Pattern::stages, staged},
    Algorithm{gather, "mst", "blocks go up a minimum spanning tree in ⌈log2 P⌉ rounds", kMessages, kMoves,
              Pattern::spanning, mst_gather},
    Algorithm{gather, "flat", "everyone sends to the root at once", kMessages, kMoves, Pattern::other, flat_gather},

    Algorithm{reduce, "direct", kDirect, kShared, kCanonical, Pattern::direct, direct},
    Algorithm{reduce, "inline", kInline, kShared, kCanonical, Pattern::slots, inlined},
    Algorithm{reduce, "staged", kStaged, kShared, kCanonical, Pattern::stages, staged},
    Algorithm{reduce, "mst", "sums go up a minimum spanning tree: ⌈log2 P⌉ rounds of the whole vector", kMessages,
              kAnyOrder, Pattern::spanning, mst_reduce, kPipelined},
    Algorithm{reduce, "flat", "everyone sends to the root, which sums", kMessages, kCanonical, Pattern::other,
              flat_reduce},
    Algorithm{reduce, "reduce-scatter-gather",
              "reduce-scatter round a ring, then gather up a spanning tree: for long vectors", kMessages, kAnyOrder,
              Pattern::composed, reduce_scatter_gather_reduce},
    Algorithm{reduce, "canonical", "slices pairwise to their owners, summed in canonical order, then to the root",
              kMessages, kCanonical, Pattern::pairwise, canonical_reduce},

    Algorithm{all_gather, "direct", kDirect, kShared, kMoves, Pattern::direct, direct},
    Algorithm{all_gather, "inline", kInline, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{all_gather, "staged", kStaged, kShared, kMoves, Pattern::stages, staged},
    Algorithm{all_gather, "ring", "blocks go round the ring in P−1 rounds", kMessages, kMoves, Pattern::one_part,
              ring_all_gather},
    Algorithm{all_gather, "circulant", "optimal volume in ⌈log2 P⌉ rounds for any P", kMessages, kMoves,
              Pattern::circle, circulant_all_gather},
    Algorithm{all_gather, "naive", "everyone sends to everyone at once", kMessages, kMoves, Pattern::other,
              naive_all_gather},
    Algorithm{all_gather, "round-robin", "the own block straight to one rank after the other", kMessages, kMoves,
              Pattern::one_part, round_robin_all_gather},
    Algorithm{all_gather, "butterfly", "recursive doubling: exchange all gathered so far with rank xor 2^k", kMessages,
              kMoves, Pattern::folding, butterfly_all_gather},
    Algorithm{all_gather, "gather-broadcast", "gather, then broadcast, on spanning trees", kMessages, kMoves,
              Pattern::composed, gather_broadcast_all_gather},

    Algorithm{reduce_scatter, "direct", kDirect, kShared, kCanonical, Pattern::direct, direct},
    Algorithm{reduce_scatter, "inline", kInline, kShared, kCanonical, Pattern::slots, inlined},
    Algorithm{reduce_scatter, "staged", kStaged, kShared, kCanonical, Pattern::stages, staged},
    Algorithm{reduce_scatter, "ring", "partial sums go round the ring in P−1 rounds", kMessages, kAnyOrder,
              Pattern::one_part, ring_reduce_scatter},
    Algorithm{reduce_scatter, "circulant", "optimal volume in ⌈log2 P⌉ rounds for any P", kMessages, kAnyOrder,
              Pattern::circle, circulant_reduce_scatter},
    Algorithm{reduce_scatter, "naive", "every block to its owner at once, which sums", kMessages, kCanonical,
              Pattern::other, naive_reduce_scatter},
    Algorithm{reduce_scatter, "round-robin", "every block straight to its owner, one per round; the owner sums",
              kMessages, kCanonical, Pattern::one_part, round_robin_reduce_scatter},
    Algorithm{reduce_scatter, "halving", "recursive halving: exchange half of what is left with rank xor 2^k",
              kMessages, kAnyOrder, Pattern::folding, halving_reduce_scatter},
    Algorithm{reduce_scatter, "reduce-scatter-composed", "reduce, then scatter, on spanning trees", kMessages,
              kAnyOrder, Pattern::composed, composed_reduce_scatter},

    Algorithm{all_reduce, "direct", kDirect, kShared, kCanonical, Pattern::direct, direct},
    Algorithm{all_reduce, "inline", kInline, kShared, kCanonical, Pattern::slots, inlined},
    Algorithm{all_reduce, "staged", kStaged, kShared, kCanonical, Pattern::stages, staged},
    Algorithm{all_reduce, "ring", "reduce-scatter, then all-gather round a ring: optimal volume, 2(P−1) rounds",
              kMessages, kAnyOrder, Pattern::one_part, ring_all_reduce},
    Algorithm{all_reduce, "naive", "everyone sends the whole vector to everyone", kMessages, kCanonical, Pattern::other,
              naive_all_reduce},
    Algorithm{all_reduce, "master-worker", "rank 0 collects, sums and sends back", kMessages, kCanonical,
              Pattern::other, master_worker_all_reduce},
    Algorithm{all_reduce, "tree", "up a binary tree and down again: 2⌊log2 P⌋ rounds of the whole vector", kMessages,
              kAnyOrder, Pattern::tree, tree_all_reduce, kPipelined},
    Algorithm{all_reduce, "double-tree", "two complementary trees carry half of the vector each", kMessages, kAnyOrder,
              Pattern::two_trees, double_tree_all_reduce, kPipelined},
    Algorithm{all_reduce, "butterfly", "recursive doubling: exchange the whole vector with rank xor 2^k", kMessages,
              kAnyOrder, Pattern::folding, butterfly_all_reduce},
    Algorithm{all_reduce, "round-robin", "each slice straight to its owner, one per round, and the sums back",
              kMessages, kAnyOrder, Pattern::one_part, round_robin_all_reduce},
    Algorithm{all_reduce, "halving-doubling",
              "Rabenseifner's: recursive halving, then doubling: optimal volume, 2·log2 P rounds", kMessages, kAnyOrder,
              Pattern::folding, halving_doubling_all_reduce},
    Algorithm{all_reduce, "circulant", "optimal volume in 2⌈log2 P⌉ rounds for any P", kMessages, kAnyOrder,
              Pattern::circle, circulant_all_reduce},
    Algorithm{all_reduce, "mst", "reduce, then broadcast, on a minimum spanning tree", kMessages, kAnyOrder,
              Pattern::spanning, mst_all_reduce, kPipelined},
    Algorithm{all_reduce, "canonical", "slices pairwise, summed in canonical order: deterministic at optimal volume",
              kMessages, kCanonical, Pattern::pairwise, canonical_all_reduce},

    Algorithm{all_to_all, "direct", kDirect, kShared, kMoves, Pattern::direct, direct},
    Algorithm{all_to_all, "inline", kInline, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{all_to_all, "staged", kStaged, kShared, kMoves, Pattern::stages, staged},
    Algorithm{all_to_all, "naive", "everyone sends to everyone at once", kMessages, kMoves, Pattern::other,
              naive_all_to_all},
    Algorithm{all_to_all, "round-robin", "one partner each way per round", kMessages, kMoves, Pattern::one_part,
              round_robin_all_to_all},
    Algorithm{all_to_all, "bruck", "⌈log2 P⌉ rounds of half the blocks: for short messages", kMessages, kMoves,
              Pattern::circle, bruck_all_to_all},

    Algorithm{barrier, "direct", kSynchronize, kShared, kMoves, Pattern::direct, direct},
    Algorithm{barrier, "inline", kSynchronize, kShared, kMoves, Pattern::slots, inlined},
    Algorithm{barrier, "staged", kSynchronize, kShared, kMoves, Pattern::stages, staged},
    Algorithm{barrier, "dissemination", "signal rank i + 2^k in round k: ⌈log2 P⌉ rounds", kMessages, kMoves,
              Pattern::circle, dissemination_barrier},
    Algorithm{barrier, "tree", "signals up a binary tree and down again", kMessages, kMoves, Pattern::tree,
              tree_barrier},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

std::vector<const Algorithm*> algorithms_for(Collective what) {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.what == what) found.push_back(&algorithm);
  return found;
}

const Algorithm& find_algorithm(Collective what, std::string_view wanted) {
  std::string dashed(wanted);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::vector<std::string_view> names;
  for (const Algorithm* algorithm : algorithms_for(what)) {
    if (algorithm->name == dashed) return *algorithm;
    names.push_back(algorithm->name);
  }
  throw ConfigError(fmt::format("no algorithm '{}' for {}; {}there are: {}", clipped(wanted), name(what),
                                did_you_mean(wanted, names), fmt::join(names, ", ")));
}

const Algorithm& find_algorithm(Collective what, Pattern pattern) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.what == what && algorithm.pattern == pattern) return algorithm;
  }
  throw ConfigError(fmt::format("no algorithm of this pattern for {}", name(what)));
}

}  // namespace trireme

// The list of algorithms. A new one is a file and a line here; it then shows up in --help, the checker, the
// conformance tests, the cost table and the benchmark.
#include "trireme/collective/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/nearest.h"
#include "trireme/base/text.h"

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
    // what, name, summary, shared, canonical, plan
    Algorithm{broadcast, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{broadcast, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{broadcast, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{broadcast, "mst", "down a minimum spanning tree: ⌈log2 P⌉ rounds of the whole vector", kMessages, kMoves,
              mst_broadcast, kPipelined},
    Algorithm{broadcast, "flat", "the root sends to everyone at once", kMessages, kMoves, flat_broadcast},
    Algorithm{broadcast, "tree", "down a binary tree", kMessages, kMoves, tree_broadcast, kPipelined},
    Algorithm{broadcast, "scatter-all-gather",
              "scatter down a spanning tree, then all-gather round a ring: for long vectors", kMessages, kMoves,
              scatter_all_gather_broadcast},

    Algorithm{scatter, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{scatter, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{scatter, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{scatter, "mst", "halves go down a minimum spanning tree in ⌈log2 P⌉ rounds", kMessages, kMoves,
              mst_scatter},
    Algorithm{scatter, "flat", "the root sends each block at once", kMessages, kMoves, flat_scatter},

    Algorithm{gather, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{gather, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{gather, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{gather, "mst", "blocks go up a minimum spanning tree in ⌈log2 P⌉ rounds", kMessages, kMoves, mst_gather},
    Algorithm{gather, "flat", "everyone sends to the root at once", kMessages, kMoves, flat_gather},

    Algorithm{reduce, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{reduce, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{reduce, "staged", kStaged, kShared, kCanonical, staged},
    Algorithm{reduce, "mst", "sums go up a minimum spanning tree: ⌈log2 P⌉ rounds of the whole vector", kMessages,
              kAnyOrder, mst_reduce, kPipelined},
    Algorithm{reduce, "flat", "everyone sends to the root, which sums", kMessages, kCanonical, flat_reduce},
    Algorithm{reduce, "reduce-scatter-gather",
              "reduce-scatter round a ring, then gather up a spanning tree: for long vectors", kMessages, kAnyOrder,
              reduce_scatter_gather_reduce},
    Algorithm{reduce, "canonical", "slices pairwise to their owners, summed in canonical order, then to the root",
              kMessages, kCanonical, canonical_reduce},

    Algorithm{all_gather, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{all_gather, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{all_gather, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{all_gather, "ring", "blocks go round the ring in P−1 rounds", kMessages, kMoves, ring_all_gather},
    Algorithm{all_gather, "circulant", "optimal volume in ⌈log2 P⌉ rounds for any P", kMessages, kMoves,
              circulant_all_gather},
    Algorithm{all_gather, "naive", "everyone sends to everyone at once", kMessages, kMoves, naive_all_gather},
    Algorithm{all_gather, "round-robin", "the own block straight to one rank after the other", kMessages, kMoves,
              round_robin_all_gather},
    Algorithm{all_gather, "butterfly", "recursive doubling: exchange all gathered so far with rank xor 2^k", kMessages,
              kMoves, butterfly_all_gather},
    Algorithm{all_gather, "gather-broadcast", "gather, then broadcast, on spanning trees", kMessages, kMoves,
              gather_broadcast_all_gather},

    Algorithm{reduce_scatter, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{reduce_scatter, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{reduce_scatter, "staged", kStaged, kShared, kCanonical, staged},
    Algorithm{reduce_scatter, "ring", "partial sums go round the ring in P−1 rounds", kMessages, kAnyOrder,
              ring_reduce_scatter},
    Algorithm{reduce_scatter, "circulant", "optimal volume in ⌈log2 P⌉ rounds for any P", kMessages, kAnyOrder,
              circulant_reduce_scatter},
    Algorithm{reduce_scatter, "naive", "every block to its owner at once, which sums", kMessages, kCanonical,
              naive_reduce_scatter},
    Algorithm{reduce_scatter, "round-robin", "every block straight to its owner, one per round; the owner sums",
              kMessages, kCanonical, round_robin_reduce_scatter},
    Algorithm{reduce_scatter, "halving", "recursive halving: exchange half of what is left with rank xor 2^k",
              kMessages, kAnyOrder, halving_reduce_scatter},
    Algorithm{reduce_scatter, "reduce-scatter-composed", "reduce, then scatter, on spanning trees", kMessages,
              kAnyOrder, composed_reduce_scatter},

    Algorithm{all_reduce, "direct", kDirect, kShared, kCanonical, direct},
    Algorithm{all_reduce, "inline", kInline, kShared, kCanonical, inlined},
    Algorithm{all_reduce, "staged", kStaged, kShared, kCanonical, staged},
    Algorithm{all_reduce, "ring", "reduce-scatter, then all-gather round a ring: optimal volume, 2(P−1) rounds",
              kMessages, kAnyOrder, ring_all_reduce},
    Algorithm{all_reduce, "naive", "everyone sends the whole vector to everyone", kMessages, kCanonical,
              naive_all_reduce},
    Algorithm{all_reduce, "master-worker", "rank 0 collects, sums and sends back", kMessages, kCanonical,
              master_worker_all_reduce},
    Algorithm{all_reduce, "tree", "up a binary tree and down again: 2⌊log2 P⌋ rounds of the whole vector", kMessages,
              kAnyOrder, tree_all_reduce, kPipelined},
    Algorithm{all_reduce, "double-tree", "two complementary trees carry half of the vector each", kMessages, kAnyOrder,
              double_tree_all_reduce, kPipelined},
    Algorithm{all_reduce, "butterfly", "recursive doubling: exchange the whole vector with rank xor 2^k", kMessages,
              kAnyOrder, butterfly_all_reduce},
    Algorithm{all_reduce, "round-robin", "each slice straight to its owner, one per round, and the sums back",
              kMessages, kAnyOrder, round_robin_all_reduce},
    Algorithm{all_reduce, "halving-doubling",
              "Rabenseifner's: recursive halving, then doubling: optimal volume, 2·log2 P rounds", kMessages, kAnyOrder,
              halving_doubling_all_reduce},
    Algorithm{all_reduce, "circulant", "optimal volume in 2⌈log2 P⌉ rounds for any P", kMessages, kAnyOrder,
              circulant_all_reduce},
    Algorithm{all_reduce, "mst", "reduce, then broadcast, on a minimum spanning tree", kMessages, kAnyOrder,
              mst_all_reduce, kPipelined},
    Algorithm{all_reduce, "canonical", "slices pairwise, summed in canonical order: deterministic at optimal volume",
              kMessages, kCanonical, canonical_all_reduce},

    Algorithm{all_to_all, "direct", kDirect, kShared, kMoves, direct},
    Algorithm{all_to_all, "inline", kInline, kShared, kMoves, inlined},
    Algorithm{all_to_all, "staged", kStaged, kShared, kMoves, staged},
    Algorithm{all_to_all, "naive", "everyone sends to everyone at once", kMessages, kMoves, naive_all_to_all},
    Algorithm{all_to_all, "round-robin", "one partner each way per round", kMessages, kMoves, round_robin_all_to_all},
    Algorithm{all_to_all, "bruck", "⌈log2 P⌉ rounds of half the blocks: for short messages", kMessages, kMoves,
              bruck_all_to_all},

    Algorithm{barrier, "direct", kSynchronize, kShared, kMoves, direct},
    Algorithm{barrier, "inline", kSynchronize, kShared, kMoves, inlined},
    Algorithm{barrier, "staged", kSynchronize, kShared, kMoves, staged},
    Algorithm{barrier, "dissemination", "signal rank i + 2^k in round k: ⌈log2 P⌉ rounds", kMessages, kMoves,
              dissemination_barrier},
    Algorithm{barrier, "tree", "signals up a binary tree and down again", kMessages, kMoves, tree_barrier},
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

}  // namespace trireme

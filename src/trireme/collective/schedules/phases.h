// Phases: schedules over a partition of a buffer that algorithms put together with then(). `rank` is the rank itself;
// the number of ranks is that of the partition's blocks where it is not given.
#pragma once
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

// Reduce-scatter: every rank holds all blocks and ends with the sum of its own; the others hold partial sums.
// All-gather: every rank holds its own block and ends with all.
Schedule ring_reduce_scatter_phase(int rank, Partition block);  // ring.cpp
Schedule ring_all_gather_phase(int rank, Partition block);
Schedule circulant_reduce_scatter_phase(int rank, Partition block);  // circulant.cpp; blocks adjoin
Schedule circulant_all_gather_phase(int rank, Partition block);

// Minimum spanning tree (mst.cpp). `vector` is the same on every rank but for its buffer; blocks adjoin.
Schedule mst_broadcast_phase(int rank, int root, int ranks, Slice vector);
Schedule mst_reduce_phase(int rank, int root, int ranks, Slice vector);
// The root's block[r] ends in rank r's `own`; on the way it lies in the block[] of other ranks.
Schedule mst_scatter_phase(int rank, int root, Partition block, Slice own);
// Rank r's `own` ends in the root's block[r].
Schedule mst_gather_phase(int rank, int root, Partition block, Slice own);
// The blocks [first, last) that pass through a rank on their way from or to the root; itself alone for a leaf.
struct Subtree {
  int first, last;
  int size() const { return last - first; }
};
Subtree mst_subtree(int rank, int root, int ranks);

// Exchange among all pairs (exchange.cpp): in one round, or with one partner each way per round.
enum class Pace { at_once, pairwise };
// from[r] goes to rank r, which keeps it in to[sender]; the own block is copied.
Schedule exchange_phase(int rank, Partition from, Partition to, Pace pace);
// `own` goes to every rank, which keeps it in to[sender]; the own block is copied.
Schedule spread_phase(int rank, Slice own, Partition to, Pace pace);

// Ranks beyond a power of two (folding.cpp). Of the first 2·extra ranks, each even one hands its work to the odd one
// after it; the `core` ranks that remain are a power of two and numbered anew.
struct Folding {
  explicit Folding(int ranks) : core(1 << floor_log2(ranks)), extra(ranks - core) {}
  int core, extra;

  bool is_folded(int rank) const { return rank < 2 * extra && rank % 2 == 0; }
  bool has_folded(int rank) const { return rank < 2 * extra && rank % 2 == 1; }  // it works for rank − 1 too
  int to_core(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  int to_rank(int v) const { return v < extra ? 2 * v + 1 : v + extra; }
  // The first rank that v works for; first(core) is P.
  int first(int v) const { return v < extra ? 2 * v : v + extra; }
};
Schedule fold_in_phase(int rank, Folding folding, Slice vector);   // the folded add theirs to their neighbour's
Schedule fold_out_phase(int rank, Folding folding, Slice vector);  // and get the result from it

// Recursive halving and doubling among the core ranks (halving.cpp). `range(a, b)` is where the parts of core ranks
// [a, b) lie. Halving is a reduce-scatter, doubling an all-gather of these parts.
using Range = std::function<Slice(int first, int last)>;
Schedule halving_phase(int rank, Folding folding, Range range);
Schedule doubling_phase(int rank, Folding folding, Range range);

// Where an all-gather whose messages span several blocks works: the output, or packed scratch if its blocks have gaps.
inline Partition gather_space(const Call& call) {
  return packed_blocks(is_packed(call) ? Buffer::output : Buffer::scratch, call);
}
// Adds the scratch and the final copy that gather_space asks for.
Schedule from_gather_space(const Call& call, Schedule schedule);  // schedule.cpp

}  // namespace trireme::schedules

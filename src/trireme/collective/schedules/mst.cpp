// Minimum spanning tree. Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice,
// and experience", 2007. P ranks, n bytes, any root.
// A range of ranks with a root is cut in halves; the root passes on to one rank of the other half (its far end), which
// is the root there; both halves go on alone. After ⌈log2 P⌉ levels a range is one rank.
//   broadcast   from the first level down, the whole vector:              ⌈log2 P⌉·(α + n·β)
//   reduce      from the last level up, adding:                           ⌈log2 P⌉·(α + n·β + n·γ)
//   scatter     as broadcast, but only the blocks of the other half:      ⌈log2 P⌉·α + (P−1)/P·n·β
//   gather      as reduce, but only the blocks of the other half:         ⌈log2 P⌉·α + (P−1)/P·n·β
// All-reduce is reduce to rank 0, then broadcast.
#include <optional>

#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

namespace {

// What passes between this rank and `peer` at one level: blocks [first, last), away from the root or towards it.
struct LevelPass {
  int peer;
  bool upper;  // this rank is the one nearer to the root
  int first, last;
};

std::optional<LevelPass> pass_at(int level, int rank, int root, int ranks) {
  int first = 0, last = ranks;
  for (; last - first > 1; --level) {
    const int middle = (first + last) / 2;
    const bool root_is_left = root < middle;
    const int other = root_is_left ? last - 1 : first;  // the root of the other half
    if (level == 0) {
      const LevelPass pass{rank == root ? other : root, rank == root, root_is_left ? middle : first,
                           root_is_left ? last : middle};
      if (rank == root || rank == other) return pass;
      return std::nullopt;
    }
    const bool is_left = rank < middle;
    if (is_left != root_is_left) root = other;
    (is_left ? last : first) = middle;
  }
  return std::nullopt;
}

// Calls act(pass, out) where this rank takes part; levels run downward from the root or upward to it.
template <class Act>
Schedule levels(int rank, int root, int ranks, bool downward, Act act) {
  const int count = ceil_log2(ranks);
  Schedule tree;
  tree.rounds = count;
  tree.fill = [=](int k, Round& out) {
    if (const auto pass = pass_at(downward ? k : count - 1 - k, rank, root, ranks)) act(*pass, out);
  };
  return tree;
}

}  // namespace

Subtree mst_subtree(int rank, int root, int ranks) {
  for (int level = 0; rank != root && level < ceil_log2(ranks); ++level) {
    const auto pass = pass_at(level, rank, root, ranks);
    if (pass && !pass->upper) return {pass->first, pass->last};
  }
  return {0, ranks};
}

Schedule mst_broadcast_phase(int rank, int root, int ranks, Slice vector) {
  return levels(rank, root, ranks, true, [=](const LevelPass& pass, Round& out) {
    pass.upper ? send(out, pass.peer, vector) : recv(out, pass.peer, vector);
  });
}

Schedule mst_reduce_phase(int rank, int root, int ranks, Slice vector) {
  return levels(rank, root, ranks, false, [=](const LevelPass& pass, Round& out) {
    pass.upper ? recv_reduce(out, pass.peer, vector) : send(out, pass.peer, vector);
  });
}

Schedule mst_scatter_phase(int rank, int root, Partition block, Slice own) {
  const int P = block.size();
  const Subtree mine = mst_subtree(rank, root, P);
  // A rank that passes blocks on takes its own out as soon as it has them.
  const auto owns_since = [=](int k) {
    if (rank == root) return k == 0;
    const auto pass = k > 0 && mine.size() > 1 ? pass_at(k - 1, rank, root, P) : std::nullopt;
    return pass && !pass->upper;
  };
  Schedule down = levels(rank, root, P, true, [=](const LevelPass& pass, Round& out) {
    const Slice range = block.range(pass.first, pass.last);
    if (pass.upper)
      send(out, pass.peer, range);
    else
      recv(out, pass.peer, mine.size() == 1 ? own : range);
  });
  Schedule scatter = down;
  if (P == 1) return before([=](Round& out) { copy(out, block[rank], own); }, scatter);
  scatter.fill = [=](int k, Round& out) {
    if (owns_since(k)) copy(out, block[rank], own);
    down.fill(k, out);
  };
  return scatter;
}

Schedule mst_gather_phase(int rank, int root, Partition block, Slice own) {
  const int P = block.size();
  const bool is_leaf = rank != root && mst_subtree(rank, root, P).size() == 1;
  Schedule up = levels(rank, root, P, false, [=](const LevelPass& pass, Round& out) {
    const Slice range = block.range(pass.first, pass.last);
    if (pass.upper)
      recv(out, pass.peer, range);
    else
      send(out, pass.peer, is_leaf ? own : range);
  });
  if (is_leaf) return up;
  return before([=](Round& out) { copy(out, own, block[rank]); }, up);
}

Schedule mst_broadcast(const Call& call) {
  Schedule tree = mst_broadcast_phase(call.rank, call.root, call.ranks, whole(Buffer::output, call));
  if (call.rank != call.root) return tree;
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); }, tree);
}

// A leaf sends its input as it is; the others add up in scratch, the root in its output.
Schedule mst_reduce(const Call& call) {
  const bool is_root = call.rank == call.root;
  const bool is_leaf = !is_root && mst_subtree(call.rank, call.root, call.ranks).size() == 1;
  const Slice in = whole(Buffer::input, call);
  const Slice sum = is_leaf ? in : whole(is_root ? Buffer::output : Buffer::scratch, call);
  Schedule tree = mst_reduce_phase(call.rank, call.root, call.ranks, sum);
  if (is_leaf) return tree;
  if (!is_root) tree.scratch = call.count;
  return before([=](Round& out) { copy(out, in, sum); }, tree);
}

Schedule mst_all_reduce(const Call& call) {
  const Slice all = whole(Buffer::output, call);
  return before(
      [=](Round& out) { copy(out, whole(Buffer::input, call), all); },
      then(mst_reduce_phase(call.rank, 0, call.ranks, all), mst_broadcast_phase(call.rank, 0, call.ranks, all)));
}

namespace {

// Scratch for the blocks of a subtree alone: blocks before its first are never named, so the base may wrap below 0.
Partition subtree_blocks(const Call& call, Subtree subtree) {
  Partition block = packed_blocks(Buffer::scratch, call);
  block.base -= block.parts.offset(subtree.first);
  return block;
}

}  // namespace

Schedule mst_scatter(const Call& call) {
  const Slice own = whole(Buffer::output, call);
  if (call.rank != call.root) {
    const Subtree mine = mst_subtree(call.rank, call.root, call.ranks);
    Schedule tree = mst_scatter_phase(call.rank, call.root, subtree_blocks(call, mine), own);
    if (mine.size() > 1) tree.scratch = mine.size() * call.count;
    return tree;
  }
  const Partition in = blocks_of(Buffer::input, call);
  if (is_packed(call)) return mst_scatter_phase(call.rank, call.root, in, own);
  const Partition packed = packed_blocks(Buffer::scratch, call);
  Schedule tree =
      before([=](Round& out) { copy_blocks(out, in, packed); }, mst_scatter_phase(call.rank, call.root, packed, own));
  tree.scratch = call.count * call.ranks;
  return tree;
}

Schedule mst_gather(const Call& call) {
  const Slice own = whole(Buffer::input, call);
  if (call.rank == call.root)
    return from_gather_space(call, mst_gather_phase(call.rank, call.root, gather_space(call), own));
  const Subtree mine = mst_subtree(call.rank, call.root, call.ranks);
  Schedule tree = mst_gather_phase(call.rank, call.root, subtree_blocks(call, mine), own);
  if (mine.size() > 1) tree.scratch = mine.size() * call.count;
  return is_packed(call) ? tree : after(tree, [](Round&) {});
}

}  // namespace trireme::schedules

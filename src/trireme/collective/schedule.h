// A collective is data. An algorithm is a pure function from a Call to a Schedule: what one rank does, round by
// round. No sockets, no threads, no clock. The executor runs it, the checker proves it, the cost model counts it,
// `explain` draws it: all from this one description.
//
// Buffers, in elements, with c = call.count and P = call.ranks (block b starts at b·call.stride):
//   collective       input            output
//   broadcast        c at the root    c
//   reduce           c                c at the root
//   all_reduce       c                c
//   scatter          P·c at the root  c
//   gather           c                P·c at the root
//   all_gather       c                P·c
//   reduce_scatter   P·c              c
//   all_to_all       P·c              P·c
//   barrier          –                –
// `input` is never written. Input and output may be the same memory (broadcast's and reduce's root, all_reduce), or
// input may be its own block of the output (all_gather, gather's root) or output its own block of the input
// (reduce_scatter, scatter's root); all_to_all is never in place. A schedule starts by copying its own part from input
// to output, a copy that costs nothing when both are one place, and never reads input once peers may have written
// there.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace trireme {

enum class Collective : std::uint8_t {
  broadcast,
  scatter,
  gather,
  reduce,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  barrier
};
inline constexpr std::array kCollectives{Collective::broadcast,  Collective::scatter,    Collective::gather,
                                         Collective::reduce,     Collective::all_gather, Collective::reduce_scatter,
                                         Collective::all_reduce, Collective::all_to_all, Collective::barrier};

std::string_view name(Collective what);              // "all-reduce"
Collective parse_collective(std::string_view text);  // "all-reduce", "all_reduce", "allreduce"; throws ConfigError
bool has_root(Collective what);
constexpr bool reduces(Collective what) {
  return what == Collective::reduce || what == Collective::reduce_scatter || what == Collective::all_reduce;
}
// `count` is per rank and a buffer holds P blocks.
constexpr bool has_blocks(Collective what) {
  return what == Collective::scatter || what == Collective::gather || what == Collective::all_gather ||
         what == Collective::reduce_scatter || what == Collective::all_to_all;
}

// One rank's view of one call. Everything but `rank` is the same on every rank.
struct Call {
  Collective what = Collective::barrier;
  int rank = 0;
  int ranks = 1;
  int root = 0;
  std::size_t count = 0;   // elements per rank block, or of the whole vector: see the table above
  std::size_t stride = 0;  // distance between blocks in input and output; at least count
};

enum class Buffer : std::uint8_t {
  input,
  output,
  scratch,  // private to the rank, schedule.scratch elements
  stage     // schedule.stage elements that every rank can read: only in shared schedules
};

struct Slice {
  Buffer buffer = Buffer::output;
  std::size_t offset = 0;
  std::size_t count = 0;
};

// What a round is made of. In a round, copy, reduce and combine are listed first and run in that order; then all sends
// and receives (or, in a shared schedule, all reads and reduce_froms) run at once, in any order. Hence within one round
// no receive may touch what a send reads or another receive writes.
enum class StepKind : std::uint8_t {
  copy,         // to ← from
  reduce,       // to ← to ⊕ from
  combine,      // to ← ⊕ over r = 0…ranks−1, in canonical order, of from shifted by r·stride
  send,         // from → peer
  recv,         // to ← peer
  recv_reduce,  // to ← to ⊕ what peer sends
  // Shared schedules only: peers' memory as it was when the round began, after every rank ended the round before.
  read,         // to ← peer's `from`
  reduce_from,  // to ← ⊕ over all ranks r, in canonical order, of r's `from`; `peer` says whose `to` is written
};

inline constexpr int kEveryone = -1;  // reduce_from writes the result to every rank

struct Step {
  StepKind kind;
  int peer = 0;
  Slice from;
  Slice to;
  std::size_t stride = 0;  // combine only
  Slice own;               // reduce_from: where this rank's own contribution lies, if not in `from`
};

using Round = std::vector<Step>;

// How a vector of n elements is cut into P nearly equal parts: part i is [offset(i), offset(i + 1)).
struct Parts {
  std::size_t count;
  int parts;
  std::size_t offset(int i) const {
    return count / parts * i + (static_cast<std::size_t>(i) < count % parts ? i : count % parts);
  }
  std::size_t size(int i) const { return offset(i + 1) - offset(i); }
};

// A round in which all ranks do the same but for a turn: rank r sends part (r + part) mod P to rank r + distance, if
// it is not empty, and adds or keeps what comes. It says the same as fill(), for readers of ten thousand ranks.
struct Shift {
  int distance = 0;  // mod P; 0: nothing is sent
  int part = 0;
  bool reduces = false;
  std::size_t copied = 0, folded = 0;  // elements, by every rank before it sends: see RoundWork
};

// What one rank does. Rounds are made when asked for, so that ten thousand ranks cost no memory. Every rank of a call
// has the same number of rounds; a rank with nothing to do has an empty one.
struct Schedule {
  int rounds = 0;
  std::size_t scratch = 0;  // elements
  std::size_t stage = 0;    // elements
  std::function<void(int round, Round& out)> fill;
  // Set where every round is such a shift of these parts, and there are ranks to send to.
  std::function<Shift(int round)> shift;
  Parts parts{0, 1};

  Round round(int k) const {
    Round out;
    fill(k, out);
    return out;
  }
};

// The rounds of `first`, then those of `second`; scratch and stage are shared between the two.
Schedule then(Schedule first, Schedule second);

// The canonical order of summation over [0, n): a balanced binary tree whose left part is the largest power of two
// below n. fold(0, 4) = (0 + 1) + (2 + 3); fold(0, 3) = (0 + 1) + 2.
constexpr int canonical_split(int n) {
  int left = 1;
  while (left * 2 < n) left *= 2;
  return left;
}

// How the ranks of an algorithm are arranged, and so why it costs what it costs.
enum class Pattern : std::uint8_t {
  other,
  direct,     // reads and writes peers' buffers
  slots,      // through small slots of shared memory
  stages,     // through stages of shared memory, for buffers that peers cannot read
  one_part,   // every rank sends one part in every round: a ring, or one rank after the other
  folding,    // doubling or halving among a power of two of ranks; those beyond it fold in before
  tree,       // a binary tree
  two_trees,  // two that carry half each
  spanning,   // a minimum spanning tree, of unequal halves
  composed,   // one after the other, spanning trees among them
  pairwise,   // slices straight to their owners, summed in canonical order
  circle,     // distances that double round a circle, for any number of ranks
};

// One algorithm for one collective: a line in the list schedules/members.inc.
struct Algorithm {
  Collective what;
  std::string_view name;
  std::string_view summary;  // one line for --help and the docs
  bool shared;               // reads peers' memory: only where the channel has a Board
  bool canonical;            // sums in the canonical order, so its result does not depend on the choice
  Pattern pattern;
  Schedule (*plan)(const Call&);
  bool pipelined = false;  // moves the whole vector every round: a long one goes in segments whose rounds overlap
};

std::span<const Algorithm> algorithms();
std::vector<const Algorithm*> algorithms_for(Collective what);
// Throws ConfigError listing the algorithms there are for this collective.
const Algorithm& find_algorithm(Collective what, std::string_view name);
// The first of this pattern. Every collective has those of shared memory; throws ConfigError where there is none.
const Algorithm& find_algorithm(Collective what, Pattern pattern);

}  // namespace trireme

// Recursive halving and doubling. Rabenseifner, "Optimization of collective reduction operations", 2004. P ranks, Q
// the largest power of two in P, n bytes; v numbers the Q ranks left after folding (phases.h).
//   halving, round k    the range of parts still shared with others is cut in halves; send one half to rank
//                       v xor Q/2^(k+1), add what comes to the half that holds part v
//   doubling, round k   exchange the 2^k parts gathered so far with rank v xor 2^k
// Cost for P = Q: each log2 P·α + (P−1)/P·n·β, and (P−1)/P·n·γ for the sums. All-reduce is one after the other.
// Otherwise folding adds a round of n bytes before and, for all-reduce, one after; reduce-scatter ends with a round of
// one block.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

Schedule halving_phase(int rank, Folding folding, Range range) {
  Schedule halving;
  halving.rounds = floor_log2(folding.core);
  halving.fill = [=](int k, Round& out) {
    if (folding.is_folded(rank)) return;
    const int v = folding.to_core(rank), half = folding.core >> (k + 1);
    const int partner = v ^ half;
    const int keep = v & ~(half - 1), give = partner & ~(half - 1);
    send(out, folding.to_rank(partner), range(give, give + half));
    recv_reduce(out, folding.to_rank(partner), range(keep, keep + half));
  };
  return halving;
}

Schedule doubling_phase(int rank, Folding folding, Range range) {
  Schedule doubling;
  doubling.rounds = floor_log2(folding.core);
  doubling.fill = [=](int k, Round& out) {
    if (folding.is_folded(rank)) return;
    const int v = folding.to_core(rank), have = 1 << k;
    const int partner = v ^ have;
    const int mine = v & ~(have - 1), theirs = partner & ~(have - 1);
    send(out, folding.to_rank(partner), range(mine, mine + have));
    recv(out, folding.to_rank(partner), range(theirs, theirs + have));
  };
  return doubling;
}

Schedule halving_doubling_all_reduce(const Call& call) {
  const Folding folding(call.ranks);
  const Slice all = whole(Buffer::output, call);
  const Partition part = parts_of(Buffer::output, call.count, folding.core);
  const Range range = [=](int a, int b) { return part.range(a, b); };
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), all); },
                then(then(fold_in_phase(call.rank, folding, all), halving_phase(call.rank, folding, range)),
                     then(doubling_phase(call.rank, folding, range), fold_out_phase(call.rank, folding, all))));
}

// In scratch, as the input may not be written.
Schedule halving_reduce_scatter(const Call& call) {
  const int i = call.rank, P = call.ranks;
  const Folding folding(P);
  const Partition block = packed_blocks(Buffer::scratch, call);
  const Range range = [=](int a, int b) { return block.range(folding.first(a), folding.first(b)); };
  Schedule deliver;
  deliver.rounds = 1;
  deliver.scratch = call.count * P;
  deliver.fill = [=](int, Round& out) {
    if (folding.is_folded(i)) return recv(out, i + 1, whole(Buffer::output, call));
    copy(out, block[i], whole(Buffer::output, call));
    if (folding.has_folded(i)) send(out, i - 1, block[i - 1]);
  };
  return before([=](Round& out) { copy_blocks(out, blocks_of(Buffer::input, call), block); },
                then(fold_in_phase(i, folding, block.range(0, P)), then(halving_phase(i, folding, range), deliver)));
}

}  // namespace trireme::schedules

// Butterfly, or recursive doubling. Thakur, Rabenseifner and Gropp, "Optimization of collective communication
// operations in MPICH", 2005. P ranks, Q the largest power of two in P, n bytes.
//   all-reduce   round k = 0…log2 Q−1: exchange the whole vector with rank v xor 2^k and add it
//   all-gather   round k: exchange the 2^k blocks gathered so far with rank v xor 2^k
// v numbers the Q ranks left after folding (phases.h), which costs one round before and one after unless P = Q.
// Cost for P = Q: all-reduce log2 P·(α + n·β + n·γ); all-gather log2 P·α + (P−1)/P·n·β, n bytes gathered.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

Schedule butterfly_all_reduce(const Call& call) {
  const Folding folding(call.ranks);
  const Slice all = whole(Buffer::output, call), outgoing = whole(Buffer::scratch, call);
  Schedule core;
  core.rounds = floor_log2(folding.core);
  core.scratch = call.count;
  // The vector is sent from a copy, as what comes is added to it meanwhile.
  core.fill = [=](int k, Round& out) {
    if (folding.is_folded(call.rank)) return;
    const int partner = folding.to_rank(folding.to_core(call.rank) ^ (1 << k));
    copy(out, all, outgoing);
    send(out, partner, outgoing);
    recv_reduce(out, partner, all);
  };
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), all); },
                then(fold_in_phase(call.rank, folding, all), then(core, fold_out_phase(call.rank, folding, all))));
}

Schedule butterfly_all_gather(const Call& call) {
  const int i = call.rank, P = call.ranks;
  const Folding folding(P);
  const Partition block = gather_space(call);
  Schedule fold_in, fold_out;
  fold_in.rounds = fold_out.rounds = folding.extra > 0 ? 1 : 0;
  fold_in.fill = [=](int, Round& out) {
    if (folding.is_folded(i)) send(out, i + 1, block[i]);
    if (folding.has_folded(i)) recv(out, i - 1, block[i - 1]);
  };
  // Everything but the folded rank's own block.
  fold_out.fill = [=](int, Round& out) {
    if (folding.has_folded(i)) {
      send(out, i - 1, block.range(0, i - 1));
      send(out, i - 1, block.range(i, P));
    }
    if (folding.is_folded(i)) {
      recv(out, i + 1, block.range(0, i));
      recv(out, i + 1, block.range(i + 1, P));
    }
  };
  const Range range = [=](int a, int b) { return block.range(folding.first(a), folding.first(b)); };
  return from_gather_space(call, before([=](Round& out) { copy(out, whole(Buffer::input, call), block[i]); },
                                        then(fold_in, then(doubling_phase(i, folding, range), fold_out))));
}

}  // namespace trireme::schedules

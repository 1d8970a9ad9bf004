// Staged: for long vectors in buffers that peers cannot read, through a stage that they can. P ranks, n bytes per
// rank; the executor cuts long vectors so that a stage stays in the cache.
//   all-reduce   round 0   copy every part of the input but one's own to the stage
//                round 1   rank i folds part i of all stages and of its own input, and leaves the sum in its place
//                round 2   collect the parts from their owners
//   reduce       the same, and only the root collects
//   the others   as inline: each block is staged once and read once by those who need it
// Cost of an all-reduce per rank: (P−1)/P·n copied in, n folded, n collected; two synchronizations, stage of n.
#include "trireme/collective/algorithms.h"
#include "trireme/collective/steps.h"

namespace trireme::schedules {

Schedule staged(const Call& call) {
  if (call.what != Collective::all_reduce && call.what != Collective::reduce) return inlined(call);
  const int i = call.rank, P = call.ranks;
  const Partition own = parts_of(Buffer::input, call.count, P), staged_part = parts_of(Buffer::stage, call.count, P),
                  result = parts_of(Buffer::output, call.count, P);
  const bool collects = call.what == Collective::all_reduce || i == call.root;
  Schedule three;
  three.rounds = 3;
  three.stage = call.count;
  three.fill = [=](int k, Round& out) {
    for (int step = 1; k == 0 && step < P; ++step) copy(out, own[wrap(i + step, P)], staged_part[wrap(i + step, P)]);
    if (k == 1) reduce_from(out, staged_part[i], staged_part[i], i, own[i]);
    if (k < 2 || !collects) return;
    copy(out, staged_part[i], result[i]);
    for (int step = 1; step < P; ++step) {
      const int r = wrap(i + step, P);
      read(out, r, staged_part[r], result[r]);
    }
  };
  return three;
}

}  // namespace trireme::schedules

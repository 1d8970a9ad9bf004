// Staged: for long vectors in buffers that peers cannot read, through a stage that they can. P ranks, n bytes per
// rank; the executor cuts long vectors so that a stage stays in the cache.
//   all-reduce   round 0   copy the input to the stage
//                round 1   rank i folds part i of all stages into a second region of its own stage
//                round 2   collect the parts from their owners
//   reduce       the same, and only the root collects
//   the others   as inline: each block is staged once and read once by those who need it
// Cost of an all-reduce per rank: n copied in, n folded, n collected; two synchronizations, stage of n + n/P.
#include "trireme/collective/algorithms.h"
#include "trireme/collective/steps.h"

namespace trireme::schedules {

Schedule staged(const Call& call) {
  if (call.what != Collective::all_reduce && call.what != Collective::reduce) return inlined(call);
  const int i = call.rank, P = call.ranks;
  const Partition staged_part = parts_of(Buffer::stage, call.count, P),
                  result = parts_of(Buffer::output, call.count, P);
  const bool collects = call.what == Collective::all_reduce || i == call.root;
  // Where rank r leaves its sum, on its own stage.
  const auto sum = [=](int r) { return stage(call.count, result[r].count); };
  Schedule three;
  three.rounds = 3;
  three.stage = call.count + result[0].count;
  three.fill = [=](int k, Round& out) {
    if (k == 0) copy(out, whole(Buffer::input, call), whole(Buffer::stage, call));
    if (k == 1) reduce_from(out, staged_part[i], sum(i), i);
    if (k < 2 || !collects) return;
    copy(out, sum(i), result[i]);
    for (int r = 1; r < P; ++r) read(out, wrap(i + r, P), sum(wrap(i + r, P)), result[wrap(i + r, P)]);
  };
  return three;
}

}  // namespace trireme::schedules

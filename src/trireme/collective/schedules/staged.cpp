// Staged: for long vectors in buffers that peers cannot read, through a stage that they can. P ranks, n bytes per
// rank; the executor cuts long vectors so that a stage stays in the cache.
//   all-reduce   round 0   copy every part of the input but one's own to the stage
//                round 1   rank i folds part i of all stages and of its own input into its output
//                round 2   copy that sum to where one's own part would be on the stage
//                round 3   collect the other parts from their owners
//   reduce       the sums stay on the stages, and the root collects them
//   the others   as inline: each block is staged once and read once by those who need it
// Cost of an all-reduce per rank: n copied to the stage, n folded, (P−1)/P·n collected; three synchronizations, stage
// of n. Everything on a stage is written by a copy, so that the executor may write it past the cache.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

struct Places {
  explicit Places(const Call& call)
      : own(parts_of(Buffer::input, call.count, call.ranks)),
        staged(parts_of(Buffer::stage, call.count, call.ranks)),
        result(parts_of(Buffer::output, call.count, call.ranks)) {}
  Partition own, staged, result;
};

void stage_the_others(const Call& call, const Places& at, Round& out) {
  for (int step = 1; step < call.ranks; ++step) {
    const int r = wrap(call.rank + step, call.ranks);
    copy(out, at.own[r], at.staged[r]);
  }
}

void collect_parts(const Call& call, const Places& at, Round& out) {
  for (int step = 1; step < call.ranks; ++step) {
    const int r = wrap(call.rank + step, call.ranks);
    read(out, r, at.staged[r], at.result[r]);
  }
}

Schedule staged_all_reduce(const Call& call) {
  const Places at(call);
  Schedule four;
  four.rounds = 4;
  four.stage = call.count;
  four.fill = [=, i = call.rank](int k, Round& out) {
    if (k == 0) stage_the_others(call, at, out);
    if (k == 1) reduce_from(out, at.staged[i], at.result[i], i, at.own[i]);
    if (k == 2) copy(out, at.result[i], at.staged[i]);
    if (k == 3) collect_parts(call, at, out);
  };
  return four;
}

Schedule staged_reduce(const Call& call) {
  const Places at(call);
  Schedule three;
  three.rounds = 3;
  three.stage = call.count;
  three.fill = [=, i = call.rank](int k, Round& out) {
    if (k == 0) stage_the_others(call, at, out);
    if (k == 1) reduce_from(out, at.staged[i], at.staged[i], i, at.own[i]);
    if (k < 2 || i != call.root) return;
    copy(out, at.staged[i], at.result[i]);
    collect_parts(call, at, out);
  };
  return three;
}

}  // namespace

Schedule staged(const Call& call) {
  if (call.what == Collective::all_reduce) return staged_all_reduce(call);
  if (call.what == Collective::reduce) return staged_reduce(call);
  return inlined(call);
}

}  // namespace trireme::schedules

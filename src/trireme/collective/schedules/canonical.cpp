// Canonical: sums in the canonical order of schedule.h over messages, at optimal volume: what --deterministic runs.
// i is this rank, P the number of ranks, n bytes; slice r of the vector belongs to rank r.
//   P−1 rounds        slices pairwise to their owners, each kept apart in scratch
//   then              the owner combines its P slices in canonical order
//   all-reduce        P−1 rounds more: pairwise, the owner's sum to everyone
//   reduce            one round more: the owners' sums to the root
// Cost: all-reduce 2(P−1)·α + 2(P−1)/P·n·β + (P−1)/P·n·γ, as the ring; reduce P·α + 2(P−1)/P·n·β + (P−1)/P·n·γ.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

namespace {

// The slices of all ranks that this rank sums, in rank order.
Partition slots(const Call& call, std::size_t size) { return {Buffer::scratch, {size * call.ranks, call.ranks}}; }

}  // namespace

Schedule canonical_all_reduce(const Call& call) {
  const int i = call.rank;
  const Partition in = parts_of(Buffer::input, call.count, call.ranks);
  const Partition sum = parts_of(Buffer::output, call.count, call.ranks);
  const std::size_t size = sum[i].count;
  Schedule gathered = spread_phase(i, sum[i], sum, Pace::pairwise);
  gathered.scratch = size * call.ranks;
  return then(exchange_phase(i, in, slots(call, size), Pace::pairwise),
              before([=](Round& out) { combine(out, scratch(0, size), size, sum[i]); }, gathered));
}

Schedule canonical_reduce(const Call& call) {
  const int i = call.rank, P = call.ranks;
  const Partition in = parts_of(Buffer::input, call.count, P), result = parts_of(Buffer::output, call.count, P);
  const std::size_t size = in[i].count;
  const Slice sum = i == call.root ? result[i] : scratch(size * P, size);
  Schedule collect;
  collect.rounds = 1;
  collect.scratch = size * P + size;
  collect.fill = [=](int, Round& out) {
    combine(out, scratch(0, size), size, sum);
    if (i != call.root) return send(out, call.root, sum);
    for (int r = 0; r < P; ++r)
      if (r != i) recv(out, r, result[r]);
  };
  return then(exchange_phase(i, in, slots(call, size), Pace::pairwise), collect);
}

}  // namespace trireme::schedules

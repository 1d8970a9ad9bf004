// Ring. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
// P ranks in a circle; each sends to its right neighbour and receives from its left one. i is this rank; block b of
// the vector belongs to rank b; n bytes in all.
//   reduce-scatter, round k = 0…P−2: send the partial sum of block i−k−1, add what comes to block i−k−2.
//                                    Rank i ends with the whole sum of block i.
//   all-gather,     round k = 0…P−2: send block i−k, receive block i−k−1.
// Cost of each: (P−1)·α + (P−1)/P·n·β, and (P−1)/P·n·γ for the sums. All-reduce is one after the other.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

Schedule ring_reduce_scatter_phase(int i, Partition block) {
  Schedule ring;
  const int P = block.size();
  ring.rounds = P - 1;
  ring.fill = [=](int k, Round& out) {
    send(out, wrap(i + 1, P), block[wrap(i - k - 1, P)]);
    recv_reduce(out, wrap(i - 1, P), block[wrap(i - k - 2, P)]);
  };
  if (P > 1) ring.shift = [](int k) { return Shift{1, -k - 1, true}; };
  ring.parts = block.parts;
  return ring;
}

Schedule ring_all_gather_phase(int i, Partition block) {
  Schedule ring;
  const int P = block.size();
  ring.rounds = P - 1;
  ring.fill = [=](int k, Round& out) {
    send(out, wrap(i + 1, P), block[wrap(i - k, P)]);
    recv(out, wrap(i - 1, P), block[wrap(i - k - 1, P)]);
  };
  if (P > 1) ring.shift = [](int k) { return Shift{1, -k, false}; };
  ring.parts = block.parts;
  return ring;
}

Schedule ring_all_reduce(const Call& call) {
  const Partition part = parts_of(Buffer::output, call.count, call.ranks);
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); },
                then(ring_reduce_scatter_phase(call.rank, part), ring_all_gather_phase(call.rank, part)));
}

Schedule ring_all_gather(const Call& call) {
  const Partition block = blocks_of(Buffer::output, call);
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), block[call.rank]); },
                ring_all_gather_phase(call.rank, block));
}

// The input may not be written, so partial sums travel through two halves of scratch, in turn; the last is the result.
Schedule ring_reduce_scatter(const Call& call) {
  const Partition mine = blocks_of(Buffer::input, call);
  const int i = call.rank, P = call.ranks;
  Schedule ring;
  ring.rounds = P - 1;
  ring.scratch = 2 * call.count;
  ring.fill = [=](int k, Round& out) {
    const auto partial = [&](int round) {
      return round == P - 2 ? whole(Buffer::output, call) : scratch(round % 2 * call.count, call.count);
    };
    copy(out, mine[wrap(i - k - 2, P)], partial(k));
    send(out, wrap(i + 1, P), k == 0 ? mine[wrap(i - 1, P)] : partial(k - 1));
    recv_reduce(out, wrap(i - 1, P), partial(k));
  };
  ring.parts = mine.parts;
  if (P > 1) ring.shift = [=](int k) { return Shift{1, -k - 1, true, k < P - 2 ? call.count : 0}; };
  if (P > 1) return ring;
  return before([=](Round& out) { copy(out, mine[0], whole(Buffer::output, call)); }, ring);
}

}  // namespace trireme::schedules

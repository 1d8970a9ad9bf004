// Exchange among all pairs. i is this rank, P the number of ranks, n bytes per rank.
//   at once    one round: every rank sends to and receives from all others, P−1 wires each way
//   pairwise   round k = 1…P−1: send to rank i+k, receive from rank i−k, one wire each way at a time
// Naive algorithms take the first, round-robin ones the second. Sums are made in canonical order, once all
// contributions are there, except in round-robin all-reduce, which adds each slice as it comes.
//   all-reduce       naive         the whole vector to everyone                  P−1 messages of n,   P(P−1)·n in all
//                    round-robin   slice i+k to its owner, which adds it;
//                                  then the owner's sum to rank i+k              2(P−1) rounds of n/P, 2(P−1)·n in all
//   reduce-scatter   block r to rank r, which sums         (P−1)·n/P sent per rank
//   all-gather       the own block to everyone             (P−1)·n sent per rank
//   all-to-all       block r to rank r                     (P−1)·n/P sent per rank
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

namespace {

// Calls meet(k, out) for each distance k to the partners. `shift` says the same of one distance.
template <class Meet>
Schedule paced(const Parts& parts, Pace pace, Meet meet, Shift (*shift)(int k)) {
  const int P = parts.parts;
  Schedule all;
  all.rounds = pace == Pace::pairwise || P == 1 ? P - 1 : 1;
  all.fill = [=](int round, Round& out) {
    if (pace == Pace::pairwise) return meet(round + 1, out);
    for (int k = 1; k < P; ++k) meet(k, out);
  };
  all.parts = parts;
  if (pace == Pace::pairwise && P > 1) all.shift = [=](int round) { return shift(round + 1); };
  return all;
}

Schedule summed(const Call& call, Schedule schedule) {
  schedule.scratch = call.count * call.ranks;
  return after(schedule,
               [=](Round& out) { combine(out, scratch(0, call.count), call.count, whole(Buffer::output, call)); });
}

}  // namespace

Schedule exchange_phase(int i, Partition from, Partition to, Pace pace) {
  const int P = from.size();
  const auto meet = [=](int k, Round& out) {
    send(out, wrap(i + k, P), from[wrap(i + k, P)]);
    recv(out, wrap(i - k, P), to[wrap(i - k, P)]);
  };
  return before([=](Round& out) { copy(out, from[i], to[i]); }, paced(from.parts, pace, meet, [](int k) {
                  return Shift{k, k, false};
                }));
}

Schedule spread_phase(int i, Slice own, Partition to, Pace pace) {
  const int P = to.size();
  const auto meet = [=](int k, Round& out) {
    send(out, wrap(i + k, P), own);
    recv(out, wrap(i - k, P), to[wrap(i - k, P)]);
  };
  return before([=](Round& out) { copy(out, own, to[i]); }, paced(to.parts, pace, meet, [](int k) {
                  return Shift{k, 0, false};
                }));
}

Schedule naive_all_reduce(const Call& call) {
  return summed(
      call, spread_phase(call.rank, whole(Buffer::input, call), packed_blocks(Buffer::scratch, call), Pace::at_once));
}

Schedule round_robin_all_reduce(const Call& call) {
  const int i = call.rank, P = call.ranks;
  const Partition part = parts_of(Buffer::output, call.count, P);
  const auto meet = [=](int k, Round& out) {
    send(out, wrap(i + k, P), part[wrap(i + k, P)]);
    recv_reduce(out, wrap(i - k, P), part[i]);
  };
  Schedule share = paced(part.parts, Pace::pairwise, meet, [](int k) { return Shift{k, k, true}; });
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); },
                then(share, spread_phase(i, part[i], part, Pace::pairwise)));
}

namespace {

Schedule exchanged_reduce_scatter(const Call& call, Pace pace) {
  return summed(call,
                exchange_phase(call.rank, blocks_of(Buffer::input, call), packed_blocks(Buffer::scratch, call), pace));
}

}  // namespace

Schedule naive_reduce_scatter(const Call& call) { return exchanged_reduce_scatter(call, Pace::at_once); }
Schedule round_robin_reduce_scatter(const Call& call) { return exchanged_reduce_scatter(call, Pace::pairwise); }

Schedule naive_all_gather(const Call& call) {
  return spread_phase(call.rank, whole(Buffer::input, call), blocks_of(Buffer::output, call), Pace::at_once);
}
Schedule round_robin_all_gather(const Call& call) {
  return spread_phase(call.rank, whole(Buffer::input, call), blocks_of(Buffer::output, call), Pace::pairwise);
}

Schedule naive_all_to_all(const Call& call) {
  return exchange_phase(call.rank, blocks_of(Buffer::input, call), blocks_of(Buffer::output, call), Pace::at_once);
}
Schedule round_robin_all_to_all(const Call& call) {
  return exchange_phase(call.rank, blocks_of(Buffer::input, call), blocks_of(Buffer::output, call), Pace::pairwise);
}

}  // namespace trireme::schedules

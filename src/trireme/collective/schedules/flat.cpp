// Flat: everyone talks to one rank at once. P ranks, n bytes; the root (or rank 0, the master) needs P−1 wires.
//   master-worker    workers send their vectors to the master, which sums them in canonical order and sends the sum
//                    back: 2 rounds, 2(P−1)·n in all
//   broadcast, scatter, gather, reduce    one round to or from the root
// Cost with one wire at the root: (P−1)·(α + m·β) per round, m the message's bytes.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

// Calls act(r, out) at the root for every other rank r, and away(out) at the others.
template <class Act, class Away>
Schedule star(int rank, int root, int ranks, Act act, Away away) {
  Schedule one;
  one.rounds = ranks > 1 ? 1 : 0;
  one.fill = [=](int, Round& out) {
    if (rank != root) return away(out);
    for (int r = 0; r < ranks; ++r)
      if (r != root) act(r, out);
  };
  return one;
}

}  // namespace

Schedule flat_broadcast(const Call& call) {
  const Slice all = whole(Buffer::output, call);
  Schedule one = star(
      call.rank, call.root, call.ranks, [=](int r, Round& out) { send(out, r, all); },
      [=](Round& out) { recv(out, call.root, all); });
  if (call.rank != call.root) return one;
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), all); }, one);
}

Schedule flat_scatter(const Call& call) {
  const Partition block = blocks_of(Buffer::input, call);
  const Slice own = whole(Buffer::output, call);
  Schedule one = star(
      call.rank, call.root, call.ranks, [=](int r, Round& out) { send(out, r, block[r]); },
      [=](Round& out) { recv(out, call.root, own); });
  if (call.rank != call.root) return one;
  return before([=](Round& out) { copy(out, block[call.rank], own); }, one);
}

Schedule flat_gather(const Call& call) {
  const Partition block = blocks_of(Buffer::output, call);
  const Slice own = whole(Buffer::input, call);
  Schedule one = star(
      call.rank, call.root, call.ranks, [=](int r, Round& out) { recv(out, r, block[r]); },
      [=](Round& out) { send(out, call.root, own); });
  if (call.rank != call.root) return one;
  return before([=](Round& out) { copy(out, own, block[call.rank]); }, one);
}

namespace {

// Everybody's vector side by side in the root's scratch.
Schedule collect_at_root(const Call& call, int root) {
  const Partition slot = packed_blocks(Buffer::scratch, call);
  const Slice own = whole(Buffer::input, call);
  Schedule one = star(
      call.rank, root, call.ranks, [=](int r, Round& out) { recv(out, r, slot[r]); },
      [=](Round& out) { send(out, root, own); });
  if (call.rank != root) return one;
  one.scratch = call.count * call.ranks;
  return before([=](Round& out) { copy(out, own, slot[root]); }, one);
}

}  // namespace

Schedule flat_reduce(const Call& call) {
  return after(collect_at_root(call, call.root), [=](Round& out) {
    if (call.rank == call.root) combine(out, scratch(0, call.count), call.count, whole(Buffer::output, call));
  });
}

Schedule master_worker_all_reduce(const Call& call) {
  const Slice all = whole(Buffer::output, call);
  Schedule back = star(
      call.rank, 0, call.ranks, [=](int r, Round& out) { send(out, r, all); }, [=](Round& out) { recv(out, 0, all); });
  if (call.rank == 0) back = before([=](Round& out) { combine(out, scratch(0, call.count), call.count, all); }, back);
  return then(collect_at_root(call, 0), back);
}

}  // namespace trireme::schedules

// Direct: for ranks that can read and write each other's buffers. P ranks, n bytes per rank.
// One round, in which every input is read once and every output written once, straight from place to place:
//   all-reduce       rank i folds part i of all inputs and stores it in everybody's output
//   reduce           rank i folds part i and stores it in the root's output
//   reduce-scatter   rank i folds block i into its own output
//   the moves        whoever wants a block reads it
// Cost: 2·P·n bytes of memory traffic for an all-reduce, the floor; one synchronization before and one after.
// No element is touched by two ranks, so input and output may be one.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

// `from` of rank `source` to `to` of this rank.
void fetch(Round& out, const Call& call, int source, Slice from, Slice to) {
  if (source == call.rank)
    copy(out, from, to);
  else
    read(out, source, from, to);
}

void fill_direct(const Call& call, Round& out) {
  const int i = call.rank, P = call.ranks;
  const bool is_root = i == call.root;
  const Slice all_in = whole(Buffer::input, call), all_out = whole(Buffer::output, call);
  const Partition in = blocks_of(Buffer::input, call), to = blocks_of(Buffer::output, call);
  const Partition part = parts_of(Buffer::input, call.count, P), result = parts_of(Buffer::output, call.count, P);
  switch (call.what) {
    case Collective::all_reduce:
      return reduce_from(out, part[i], result[i], kEveryone);
    case Collective::reduce:
      return reduce_from(out, part[i], result[i], call.root);
    case Collective::reduce_scatter:
      return reduce_from(out, in[i], all_out, i);
    case Collective::broadcast:
      return fetch(out, call, call.root, all_in, all_out);
    case Collective::scatter:
      return fetch(out, call, call.root, in[i], all_out);
    case Collective::gather:
      for (int k = 0; is_root && k < P; ++k) fetch(out, call, wrap(i + k, P), all_in, to[wrap(i + k, P)]);
      return;
    case Collective::all_gather:
      for (int k = 0; k < P; ++k) fetch(out, call, wrap(i + k, P), all_in, to[wrap(i + k, P)]);
      return;
    case Collective::all_to_all:
      for (int k = 0; k < P; ++k) fetch(out, call, wrap(i + k, P), in[i], to[wrap(i + k, P)]);
      return;
    case Collective::barrier:
      return;
  }
}

}  // namespace

Schedule direct(const Call& call) {
  Schedule one;
  one.rounds = 1;
  one.fill = [call](int, Round& out) { fill_direct(call, out); };
  return one;
}

}  // namespace trireme::schedules

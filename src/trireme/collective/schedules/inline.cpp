// Inline: for messages so small that synchronizing costs more than copying. P ranks, n bytes per rank.
//   round 0   everyone copies what others need of its input to its stage
//   round 1   everyone reads what it needs from the stages; sums are folded by each rank for itself
// Cost: one synchronization; P·n bytes read per rank. Nobody's input or output is touched by a peer.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

void put_on_stage(const Call& call, Round& out) {
  const Partition in = blocks_of(Buffer::input, call), slot = packed_blocks(Buffer::stage, call);
  const bool is_root = call.rank == call.root;
  switch (call.what) {
    case Collective::broadcast:
      if (!is_root) return;
      copy(out, whole(Buffer::input, call), whole(Buffer::stage, call));
      return copy(out, whole(Buffer::input, call), whole(Buffer::output, call));
    case Collective::scatter:
    case Collective::all_to_all:
      if (call.what == Collective::scatter && !is_root) return;
      for (int b = 0; b < call.ranks; ++b)
        if (b != call.rank) copy(out, in[b], slot[b]);
      return copy(
          out, in[call.rank],
          call.what == Collective::scatter ? whole(Buffer::output, call) : blocks_of(Buffer::output, call)[call.rank]);
    case Collective::reduce_scatter:
      for (int b = 0; b < call.ranks; ++b) copy(out, in[b], slot[b]);
      return;
    case Collective::gather:
    case Collective::all_gather:
      if (call.what == Collective::gather && is_root)
        return copy(out, whole(Buffer::input, call), blocks_of(Buffer::output, call)[call.rank]);
      copy(out, whole(Buffer::input, call), whole(Buffer::stage, call));
      if (call.what == Collective::all_gather)
        copy(out, whole(Buffer::input, call), blocks_of(Buffer::output, call)[call.rank]);
      return;
    case Collective::reduce:
    case Collective::all_reduce:
      return copy(out, whole(Buffer::input, call), whole(Buffer::stage, call));
    case Collective::barrier:
      return;
  }
}

void read_from_stages(const Call& call, Round& out) {
  const int i = call.rank, P = call.ranks;
  const Partition to = blocks_of(Buffer::output, call), slot = packed_blocks(Buffer::stage, call);
  const Slice staged_vector = whole(Buffer::stage, call), result = whole(Buffer::output, call);
  const bool is_root = i == call.root;
  switch (call.what) {
    case Collective::broadcast:
      if (!is_root) read(out, call.root, staged_vector, result);
      return;
    case Collective::scatter:
      if (!is_root) read(out, call.root, slot[i], result);
      return;
    case Collective::gather:
    case Collective::all_gather:
      if (call.what == Collective::gather && !is_root) return;
      for (int k = 1; k < P; ++k) read(out, wrap(i + k, P), staged_vector, to[wrap(i + k, P)]);
      return;
    case Collective::all_to_all:
      for (int k = 1; k < P; ++k) read(out, wrap(i + k, P), slot[i], to[wrap(i + k, P)]);
      return;
    case Collective::reduce_scatter:
      return reduce_from(out, slot[i], result, i);
    case Collective::reduce:
      if (!is_root) return;
      return reduce_from(out, staged_vector, result, i);
    case Collective::all_reduce:
      return reduce_from(out, staged_vector, result, i);
    case Collective::barrier:
      return;
  }
}

}  // namespace

Schedule inlined(const Call& call) {
  const bool stages_blocks = call.what == Collective::scatter || call.what == Collective::all_to_all ||
                             call.what == Collective::reduce_scatter;
  Schedule two;
  two.rounds = 2;
  two.stage = stages_blocks ? call.count * call.ranks : call.count;
  two.fill = [call](int k, Round& out) { k == 0 ? put_on_stage(call, out) : read_from_stages(call, out); };
  return two;
}

}  // namespace trireme::schedules

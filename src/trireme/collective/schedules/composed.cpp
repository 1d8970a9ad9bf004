// Collectives made of others, as van de Geijn and others teach it (see mst.cpp). P ranks, n bytes.
//   broadcast        scatter (MST), then all-gather (ring)    (⌈log2 P⌉ + P−1)·α + 2(P−1)/P·n·β
//   reduce           reduce-scatter (ring), then gather (MST) (⌈log2 P⌉ + P−1)·α + 2(P−1)/P·n·β + (P−1)/P·n·γ
//   all-gather       gather, then broadcast (both MST)        2⌈log2 P⌉·α + (⌈log2 P⌉ + (P−1)/P)·n·β
//   reduce-scatter   reduce, then scatter (both MST)          2⌈log2 P⌉·α + (⌈log2 P⌉ + (P−1)/P)·n·β + ⌈log2 P⌉·n·γ
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme::schedules {

Schedule scatter_all_gather_broadcast(const Call& call) {
  const Partition part = parts_of(Buffer::output, call.count, call.ranks);
  Schedule both =
      then(mst_scatter_phase(call.rank, call.root, part, part[call.rank]), ring_all_gather_phase(call.rank, part));
  if (call.rank != call.root) return both;
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(Buffer::output, call)); }, both);
}

Schedule reduce_scatter_gather_reduce(const Call& call) {
  const Buffer place = call.rank == call.root ? Buffer::output : Buffer::scratch;
  const Partition part = parts_of(place, call.count, call.ranks);
  Schedule both =
      then(ring_reduce_scatter_phase(call.rank, part), mst_gather_phase(call.rank, call.root, part, part[call.rank]));
  if (call.rank != call.root) both.scratch = call.count;
  return before([=](Round& out) { copy(out, whole(Buffer::input, call), whole(place, call)); }, both);
}

Schedule gather_broadcast_all_gather(const Call& call) {
  const Partition block = gather_space(call);
  return from_gather_space(call, then(mst_gather_phase(call.rank, 0, block, whole(Buffer::input, call)),
                                      mst_broadcast_phase(call.rank, 0, call.ranks, block.range(0, call.ranks))));
}

// In scratch, as the input may not be written.
Schedule composed_reduce_scatter(const Call& call) {
  const Partition block = packed_blocks(Buffer::scratch, call);
  Schedule both = then(mst_reduce_phase(call.rank, 0, call.ranks, block.range(0, call.ranks)),
                       mst_scatter_phase(call.rank, 0, block, whole(Buffer::output, call)));
  both.scratch = call.count * call.ranks;
  return before([=](Round& out) { copy_blocks(out, blocks_of(Buffer::input, call), block); }, both);
}

}  // namespace trireme::schedules

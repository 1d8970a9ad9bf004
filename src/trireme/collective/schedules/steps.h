// Words for writing rounds. A step of no elements is left out, on both sides of a message alike. Only the files that
// hold algorithms include this.
#pragma once
#include <cstddef>
#include <functional>

#include "trireme/collective/schedule.h"

namespace trireme::schedules {

inline Slice input(std::size_t offset, std::size_t count) { return {Buffer::input, offset, count}; }
inline Slice output(std::size_t offset, std::size_t count) { return {Buffer::output, offset, count}; }
inline Slice scratch(std::size_t offset, std::size_t count) { return {Buffer::scratch, offset, count}; }
inline Slice stage(std::size_t offset, std::size_t count) { return {Buffer::stage, offset, count}; }

inline void add(Round& out, const Step& step) {
  if (step.to.count > 0 || step.from.count > 0) out.push_back(step);
}
// Nothing where both are one place.
inline void copy(Round& out, Slice from, Slice to) {
  if (from.buffer != to.buffer || from.offset != to.offset) add(out, {StepKind::copy, 0, from, to});
}
inline void reduce(Round& out, Slice from, Slice to) { add(out, {StepKind::reduce, 0, from, to}); }
// `first` is rank 0's contribution; rank r's lies r·stride further.
inline void combine(Round& out, Slice first, std::size_t stride, Slice to) {
  add(out, {StepKind::combine, 0, first, to, stride});
}
inline void send(Round& out, int peer, Slice from) { add(out, {StepKind::send, peer, from, {}}); }
inline void recv(Round& out, int peer, Slice to) { add(out, {StepKind::recv, peer, {}, to}); }
inline void recv_reduce(Round& out, int peer, Slice to) { add(out, {StepKind::recv_reduce, peer, {}, to}); }
inline void read(Round& out, int peer, Slice from, Slice to) { add(out, {StepKind::read, peer, from, to}); }
inline void reduce_from(Round& out, Slice from, Slice to, int peer, Slice own = {}) {
  add(out, {StepKind::reduce_from, peer, from, to, 0, own});
}
// Zero-length messages, for barriers.
inline void send_signal(Round& out, int peer) { out.push_back({StepKind::send, peer, {}, {}}); }
inline void recv_signal(Round& out, int peer) { out.push_back({StepKind::recv, peer, {}, {}}); }

// x mod P, for x down to −P.
inline int wrap(int x, int ranks) { return (x % ranks + ranks) % ranks; }
constexpr int ceil_log2(int n) {
  int levels = 0;
  while ((1 << levels) < n) ++levels;
  return levels;
}
constexpr int floor_log2(int n) {
  int levels = 0;
  while ((2 << levels) <= n) ++levels;
  return levels;
}

// A buffer cut into blocks, one per rank. With gap = 0 neighbouring blocks adjoin.
struct Partition {
  Buffer buffer;
  Parts parts;
  std::size_t gap = 0;   // between one block and the next
  std::size_t base = 0;  // where block 0 begins

  int size() const { return parts.parts; }
  Slice operator[](int b) const { return {buffer, base + parts.offset(b) + b * gap, parts.size(b)}; }
  // Blocks [first, last) as one slice: only where they adjoin.
  Slice range(int first, int last) const {
    return {buffer, base + parts.offset(first), parts.offset(last) - parts.offset(first)};
  }
};

// The P nearly equal parts of a whole vector.
inline Partition parts_of(Buffer buffer, std::size_t count, int ranks) { return {buffer, {count, ranks}}; }
// The P blocks of an input or output, as the caller laid them out.
inline Partition blocks_of(Buffer buffer, const Call& call) {
  return {buffer, {call.count * call.ranks, call.ranks}, call.stride > call.count ? call.stride - call.count : 0};
}
// P blocks of call.count elements next to each other.
inline Partition packed_blocks(Buffer buffer, const Call& call) {
  return {buffer, {call.count * call.ranks, call.ranks}};
}
inline bool is_packed(const Call& call) { return call.stride <= call.count; }
// The first call.count elements of a buffer.
inline Slice whole(Buffer buffer, const Call& call) { return {buffer, 0, call.count}; }

// Every block of one partition to the same block of another.
inline void copy_blocks(Round& out, const Partition& from, const Partition& to) {
  for (int b = 0; b < from.size(); ++b) copy(out, from[b], to[b]);
}

using LocalSteps = std::function<void(Round& out)>;
// `local` opens the first round of `rest`; a schedule without rounds gets one.
Schedule before(LocalSteps local, Schedule rest);
// `local` in a round of its own after `first`.
Schedule after(Schedule first, LocalSteps local);
// Both at once: round k is round k of either, local steps first.
Schedule together(Schedule one, Schedule other);

}  // namespace trireme::schedules

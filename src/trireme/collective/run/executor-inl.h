// Where the slices of a call lie, in this rank's memory and in others': for the files of the executor.
#pragma once
#include "trireme/collective/run/executor.h"

namespace trireme {

inline void Executor::bind_segment(Run& run, int segment) const {
  const auto& plan = *run.plan;
  // A rank may have no such buffer.
  const auto shifted = [](std::byte* base, std::size_t bytes) { return base != nullptr ? base + bytes : nullptr; };
  const int region = segment == 0 ? 0 : segment % plan.depth();
  run.shift = plan.offset(segment) * run.element;
  run.stage_shift = plan.stage() * region * run.element;
  // The input is never written: that is the schedule's contract.
  auto* input = static_cast<std::byte*>(const_cast<void*>(run.request.input));
  run.base[static_cast<int>(Buffer::input)] = shifted(input, run.shift);
  run.base[static_cast<int>(Buffer::output)] = shifted(static_cast<std::byte*>(run.request.output), run.shift);
  run.base[static_cast<int>(Buffer::scratch)] = shifted(scratch_base_, plan.scratch() * region * run.element);
  run.base[static_cast<int>(Buffer::stage)] = shifted(peers_[rank_].stage, run.stage_shift);
}

inline std::byte* Executor::place(const Run& run, const Slice& slice) const {
  return run.base[static_cast<int>(slice.buffer)] + slice.offset * run.element;
}

// The same slice in another rank's memory, as this process sees it.
inline std::byte* Executor::place_of(const Run& run, int rank, const Slice& slice) const {
  if (rank == rank_) return place(run, slice);
  const auto& peer = peers_[rank];
  if (slice.buffer == Buffer::stage) return peer.stage + run.stage_shift + slice.offset * run.element;
  auto* base = slice.buffer == Buffer::input ? const_cast<std::byte*>(peer.input) : peer.output;
  return base + run.shift + slice.offset * run.element;
}

}  // namespace trireme

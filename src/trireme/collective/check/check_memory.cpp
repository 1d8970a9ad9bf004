#include "trireme/collective/check/check_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::checking {

namespace {

constexpr std::array<const char*, 4> kBufferNames{"input", "output", "scratch", "stage"};

const char* name_of(Buffer buffer) { return kBufferNames[static_cast<std::size_t>(buffer)]; }

// Steps are numbered from 1; 0 stands for all local ones.
constexpr std::uint64_t actor_of(int rank, int step) {
  return (static_cast<std::uint64_t>(rank) + 1) << 32 | static_cast<std::uint64_t>(step);
}
int rank_of(std::uint64_t actor) { return static_cast<int>(actor >> 32) - 1; }
std::uint32_t step_of(std::uint64_t actor) { return static_cast<std::uint32_t>(actor); }

// Local steps run before the rank's exchange, so they conflict only with other ranks.
bool conflict(std::uint64_t one, std::uint64_t other) {
  if (one == 0 || other == 0 || one == other) return false;
  return rank_of(one) != rank_of(other) || (step_of(one) != 0 && step_of(other) != 0);
}

void add_reader(std::uint64_t& first, std::uint64_t& second, std::uint64_t actor) {
  if (conflict(first, actor)) {
    if (second == 0 || (rank_of(second) == rank_of(first) && rank_of(actor) != rank_of(first))) second = actor;
  } else if (first == 0 || step_of(first) == 0) {
    first = actor;
  }
}

std::size_t all_blocks(const Call& call) { return call.count == 0 ? 0 : (call.ranks - 1) * call.stride + call.count; }

}  // namespace

bool can_be_in_place(Collective what) { return what != Collective::all_to_all && what != Collective::barrier; }

std::size_t buffer_size(const Call& call, int rank, Buffer buffer, const Schedule& schedule) {
  const bool is_root = rank == call.root;
  if (buffer == Buffer::scratch) return schedule.scratch;
  if (buffer == Buffer::stage) return schedule.stage;
  const bool is_input = buffer == Buffer::input;
  switch (call.what) {
    case Collective::broadcast:
      return is_input && !is_root ? 0 : call.count;
    case Collective::reduce:
      return is_input || is_root ? call.count : 0;
    case Collective::all_reduce:
      return call.count;
    case Collective::scatter:
      return !is_input ? call.count : is_root ? all_blocks(call) : 0;
    case Collective::gather:
      return is_input ? call.count : is_root ? all_blocks(call) : 0;
    case Collective::all_gather:
      return is_input ? call.count : all_blocks(call);
    case Collective::reduce_scatter:
      return is_input ? all_blocks(call) : call.count;
    case Collective::all_to_all:
      return all_blocks(call);
    case Collective::barrier:
      return 0;
  }
  return 0;
}

std::string text(const Slice& slice) {
  if (slice.count == 0) return fmt::format("nothing of {}", name_of(slice.buffer));
  if (slice.count == 1) return fmt::format("element {} of {}", slice.offset, name_of(slice.buffer));
  return fmt::format("elements {}…{} of {}", slice.offset, slice.offset + slice.count - 1, name_of(slice.buffer));
}

Memory::Memory(const Call& call, std::span<const Schedule> schedules, Placement placement, Symbols& symbols)
    : call_(call), placement_(placement), symbols_(symbols), bases_(call.ranks) {
  std::size_t end = 0;
  for (int rank = 0; rank < call.ranks; ++rank) {
    const auto size = [&](Buffer buffer) { return buffer_size(call, rank, buffer, schedules[rank]); };
    const std::size_t in = size(Buffer::input), out = size(Buffer::output);
    auto& base = bases_[rank];
    base[0] = end;
    if (placement == Placement::apart || in == 0 || out == 0) {
      base[1] = end + in;
      end += in + out;
    } else {
      // The smaller of the two is the rank's own block of the larger.
      const bool has_blocks = trireme::has_blocks(call.what);
      const bool blocks_out = call.what == Collective::gather || call.what == Collective::all_gather;
      base[0] = end + (has_blocks && blocks_out ? rank * call.stride : 0);
      base[1] = end + (has_blocks && !blocks_out ? rank * call.stride : 0);
      end += std::max(in, out);
    }
    base[2] = end;
    base[3] = end + size(Buffer::scratch);
    end = base[3] + size(Buffer::stage);
  }
  cells_.assign(end, kNothing);
  touches_.assign(end, {});
  const bool has_input_blocks =
      has_blocks(call.what) && call.what != Collective::gather && call.what != Collective::all_gather;
  for (int rank = 0; rank < call.ranks; ++rank) {
    const std::size_t in = buffer_size(call, rank, Buffer::input, schedules[rank]);
    for (std::size_t i = 0; i < in; ++i)
      if (!has_input_blocks || i % call.stride < call.count)
        cells_[base(rank, Buffer::input) + i] = symbols.element(rank, i);
  }
}

void Memory::begin_round(int round) { round_ = round; }

Memory::Touch& Memory::touch(std::size_t cell) {
  Touch& touch = touches_[cell];
  if (touch.round != round_) touch = {round_};
  return touch;
}

void Memory::race(std::uint64_t actor, std::uint64_t other, int owner, Slice slice, std::size_t index) const {
  const std::string where =
      fmt::format("element {} of rank {}'s {}", slice.offset + index, owner, name_of(slice.buffer));
  if (rank_of(actor) == rank_of(other))
    throw Violation(fmt::format("rank {}, round {}: race: steps {} and {} both use {} and one writes it",
                                rank_of(actor), round_, step_of(other) - 1, step_of(actor) - 1, where));
  throw Violation(fmt::format("rank {}, round {}: race: {} is also used by rank {} in this round and one writes it",
                              rank_of(actor), round_, where, rank_of(other)));
}

Value Memory::load(std::uint64_t actor, int owner, Slice slice, std::size_t index) {
  const std::size_t cell = base(owner, slice.buffer) + slice.offset + index;
  Touch& touched = touch(cell);
  if (conflict(touched.writer, actor)) race(actor, touched.writer, owner, slice, index);
  add_reader(touched.reader, touched.other_reader, actor);
  if (cells_[cell] == kNothing)
    throw Violation(fmt::format("rank {}, round {}: reads element {} of rank {}'s {}, which nothing has written",
                                rank_of(actor), round_, slice.offset + index, owner, name_of(slice.buffer)));
  return cells_[cell];
}

void Memory::store(std::uint64_t actor, int owner, Slice slice, std::size_t index, Value value) {
  const std::size_t cell = base(owner, slice.buffer) + slice.offset + index;
  Touch& touched = touch(cell);
  if (conflict(touched.writer, actor)) race(actor, touched.writer, owner, slice, index);
  for (std::uint64_t reader : {touched.reader, touched.other_reader})
    if (conflict(reader, actor)) race(actor, reader, owner, slice, index);
  touched.writer = actor;
  cells_[cell] = value;
}

// Both slices on one rank: the same place or apart, never shifted.
void Memory::check_overlap(int rank, Slice from, Slice to, const char* what) const {
  const std::size_t a = base(rank, from.buffer) + from.offset, b = base(rank, to.buffer) + to.offset;
  if (a != b && a < b + to.count && b < a + from.count)
    throw Violation(
        fmt::format("rank {}, round {}: {} from {} to {} overlaps itself", rank, round_, what, text(from), text(to)));
}

void Memory::local(int rank, const Step& step) {
  const std::uint64_t actor = actor_of(rank, 0);
  const std::size_t source = base(rank, step.from.buffer) + step.from.offset;
  // A copy onto itself, as happens in place, is left out.
  if (step.kind == StepKind::copy && source == base(rank, step.to.buffer) + step.to.offset) return;
  for (int r = 0; r < (step.kind == StepKind::combine ? call_.ranks : 1); ++r) {
    Slice from = step.from;
    from.offset += r * step.stride;
    check_overlap(rank, from, step.to, step.kind == StepKind::copy ? "copy" : "sum");
  }
  for (std::size_t i = 0; i < step.to.count; ++i) {
    Value value = 0;
    if (step.kind == StepKind::combine)
      value = symbols_.fold(0, call_.ranks, [&](int r) { return load(actor, rank, step.from, r * step.stride + i); });
    else
      value = load(actor, rank, step.from, i);
    if (step.kind == StepKind::reduce) value = symbols_.sum(load(actor, rank, step.to, i), value);
    store(actor, rank, step.to, i, value);
  }
}

void Memory::receive(int rank, int step_index, const Step& step, int sender, int send_index, const Step& send) {
  const std::uint64_t to = actor_of(rank, step_index + 1), from = actor_of(sender, send_index + 1);
  for (std::size_t i = 0; i < step.to.count; ++i) {
    Value value = load(from, sender, send.from, i);
    if (step.kind == StepKind::recv_reduce) value = symbols_.sum(load(to, rank, step.to, i), value);
    store(to, rank, step.to, i, value);
  }
}

void Memory::read(int rank, int step_index, const Step& step) {
  const std::uint64_t actor = actor_of(rank, step_index + 1);
  for (std::size_t i = 0; i < step.to.count; ++i) store(actor, rank, step.to, i, load(actor, step.peer, step.from, i));
}

void Memory::reduce_from(int rank, int step_index, const Step& step) {
  const std::uint64_t actor = actor_of(rank, step_index + 1);
  const int first = step.peer == kEveryone ? 0 : step.peer;
  const int last = step.peer == kEveryone ? call_.ranks : step.peer + 1;
  for (int r = first; r < last; ++r) check_overlap(r, step.from, step.to, "sum");
  for (std::size_t i = 0; i < step.to.count; ++i) {
    const Value value = symbols_.fold(0, call_.ranks, [&](int r) {
      return load(actor, r, r == rank && step.own.count > 0 ? step.own : step.from, i);
    });
    for (int r = first; r < last; ++r) store(actor, r, step.to, i, value);
  }
}

}  // namespace trireme::checking

#include "trireme/collective/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/collective/schedules/phases.h"

namespace trireme {

namespace {

constexpr std::array<std::string_view, kCollectives.size()> kNames{
    "broadcast", "scatter", "gather", "reduce", "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "barrier"};

std::string without_dashes(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '-' && c != '_') out += c;
  return out;
}

bool is_local_step(const Step& step) { return step.kind <= StepKind::combine; }

// What local steps cost, as round_work.cpp counts it. None where it may differ from rank to rank.
std::optional<Shift> shift_of(const schedules::LocalSteps& local, const Parts& parts) {
  Round steps;
  local(steps);
  Shift shift;
  for (const Step& step : steps) {
    const bool free = step.from.buffer == Buffer::input && step.to.buffer == Buffer::output;
    if (step.kind == StepKind::copy && !free) shift.copied += step.to.count;
    if (step.kind == StepKind::reduce) shift.folded += step.to.count;
    if (step.kind == StepKind::combine) shift.folded += step.to.count * (parts.parts - 1);
  }
  const bool alike = shift.copied + shift.folded == 0 || parts.count % parts.parts == 0;
  return alike ? std::optional(shift) : std::nullopt;
}

bool same(const Parts& a, const Parts& b) { return a.count == b.count && a.parts == b.parts; }

}  // namespace

std::string_view name(Collective what) { return kNames[static_cast<std::size_t>(what)]; }

Collective parse_collective(std::string_view text) {
  for (Collective what : kCollectives)
    if (without_dashes(text) == without_dashes(name(what))) return what;
  throw ConfigError(fmt::format("unknown collective '{}'; {}there are: {}", clipped(text), did_you_mean(text, kNames),
                                fmt::join(kNames, ", ")));
}

bool has_root(Collective what) { return what <= Collective::reduce; }

Schedule then(Schedule first, Schedule second) {
  Schedule both;
  both.rounds = first.rounds + second.rounds;
  both.scratch = std::max(first.scratch, second.scratch);
  both.stage = std::max(first.stage, second.stage);
  both.fill = [turn = first.rounds, a = std::move(first.fill), b = std::move(second.fill)](int k, Round& out) {
    if (k < turn)
      a(k, out);
    else
      b(k - turn, out);
  };
  if (first.shift && second.shift && same(first.parts, second.parts)) {
    both.parts = first.parts;
    both.shift = [turn = first.rounds, a = std::move(first.shift), b = std::move(second.shift)](int k) {
      return k < turn ? a(k) : b(k - turn);
    };
  }
  return both;
}

namespace schedules {

Schedule before(LocalSteps local, Schedule rest) {
  const int rounds = rest.rounds;
  rest.rounds = std::max(rounds, 1);
  if (auto own = rest.shift ? shift_of(local, rest.parts) : std::nullopt) {
    rest.shift = [own = *own, shift = std::move(rest.shift)](int k) {
      Shift all = shift(k);
      if (k == 0) {
        all.copied += own.copied;
        all.folded += own.folded;
      }
      return all;
    };
  } else {
    rest.shift = nullptr;
  }
  rest.fill = [rounds, local = std::move(local), fill = std::move(rest.fill)](int k, Round& out) {
    if (k == 0) local(out);
    if (k < rounds) fill(k, out);
  };
  return rest;
}

Schedule after(Schedule first, LocalSteps local) {
  Schedule last;
  last.rounds = 1;
  if (auto own = first.shift ? shift_of(local, first.parts) : std::nullopt) {
    last.parts = first.parts;
    last.shift = [own = *own](int) { return own; };
  }
  last.fill = [local = std::move(local)](int, Round& out) { local(out); };
  return then(std::move(first), std::move(last));
}

Schedule together(Schedule one, Schedule other) {
  Schedule both;
  both.rounds = std::max(one.rounds, other.rounds);
  both.scratch = std::max(one.scratch, other.scratch);
  both.stage = std::max(one.stage, other.stage);
  both.fill = [one = std::move(one), other = std::move(other)](int k, Round& out) {
    const auto start = static_cast<std::ptrdiff_t>(out.size());
    if (k < one.rounds) one.fill(k, out);
    if (k < other.rounds) other.fill(k, out);
    std::stable_partition(out.begin() + start, out.end(), is_local_step);
  };
  return both;
}

Schedule from_gather_space(const Call& call, Schedule schedule) {
  if (is_packed(call)) return schedule;
  schedule.scratch = std::max(schedule.scratch, call.count * call.ranks);
  return after(std::move(schedule),
               [=](Round& out) { copy_blocks(out, gather_space(call), blocks_of(Buffer::output, call)); });
}

}  // namespace schedules
}  // namespace trireme

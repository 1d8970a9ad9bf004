#include "trireme/collective/check/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trireme/collective/check/check_memory.h"
#include "trireme/collective/check/check_messages.h"
#include "trireme/collective/check/check_symbols.h"

namespace trireme {

namespace checking {
namespace {

bool is_local(StepKind kind) { return kind <= StepKind::combine; }
bool is_message(StepKind kind) { return kind >= StepKind::send && kind <= StepKind::recv_reduce; }

// One call, checked round by round in all its placements at once.
class Check {
 public:
  Check(const Algorithm& algorithm, const Call& call, std::span<const Schedule> schedules)
      : algorithm_(algorithm), call_(call), schedules_(schedules), rounds_(call.ranks), heard_(call.ranks) {
    std::size_t elements = 0;
    for (int rank = 0; rank < call.ranks; ++rank) {
      elements = std::max(elements, buffer_size(call, rank, Buffer::input, schedules[rank]));
      heard_[rank].assign(call.ranks, false);
      heard_[rank][rank] = true;
    }
    symbols_.reset(call.ranks, elements);
    memories_.emplace_back(call, schedules, Placement::apart, symbols_);
    if (can_be_in_place(call.what)) memories_.emplace_back(call, schedules, Placement::in_place, symbols_);
  }

  void run();

 private:
  void check_step(int rank, int round, const Step& step) const;
  void check_slice(int rank, int round, int owner, const Slice& slice) const;
  void check_shared_step(int rank, int round, const Step& step) const;
  void run_round(int round);
  void run_steps(Memory& memory, int round) const;
  void exchange(Memory& memory) const;
  void hear();
  void check_result(const Memory& memory);
  void check_value(int rank, std::size_t index, Value found, std::size_t source);
  Value canonical_sum(std::size_t source);

  [[noreturn]] void fail(int rank, int round, const std::string& what) const {
    throw Violation(fmt::format("rank {}, round {}: {}", rank, round, what));
  }

  const Algorithm& algorithm_;
  const Call& call_;
  std::span<const Schedule> schedules_;
  Symbols symbols_;
  std::vector<Memory> memories_;
  std::vector<Round> rounds_;  // of the current round, by rank
  std::vector<Message> messages_;
  std::vector<std::vector<bool>> heard_;  // barrier: of whom a rank knows that it came
  std::vector<Value> proven_;             // by element: a sum known to be right
};

void Check::check_slice(int rank, int round, int owner, const Slice& slice) const {
  const std::size_t size = buffer_size(call_, owner, slice.buffer, schedules_[owner]);
  if (slice.offset > size || slice.count > size - slice.offset)
    fail(rank, round, fmt::format("{} out of bounds: rank {} has {}", text(slice), owner, size));
  if (slice.buffer == Buffer::stage && !algorithm_.shared)
    fail(rank, round, "uses a stage, which only shared schedules have");
}

void Check::check_shared_step(int rank, int round, const Step& step) const {
  if (step.from.buffer == Buffer::scratch) fail(rank, round, "reads a peer's scratch, which is private");
  if (step.kind == StepKind::read) return check_slice(rank, round, step.peer, step.from);
  if (step.to.buffer == Buffer::scratch && step.peer != rank)
    fail(rank, round, "writes a peer's scratch, which is private");
  if (step.own.count > 0) {
    if (step.own.count != step.from.count) fail(rank, round, "its own contribution is of another size");
    check_slice(rank, round, rank, step.own);
  }
  for (int r = 0; r < call_.ranks; ++r) {
    check_slice(rank, round, r, step.from);
    if (step.peer == r || step.peer == kEveryone) check_slice(rank, round, r, step.to);
  }
}

// Everything that can be said of a step without executing it.
void Check::check_step(int rank, int round, const Step& step) const {
  const StepKind kind = step.kind;
  const bool sends = kind == StepKind::send, receives = is_message(kind) && !sends;
  if (!is_local(kind)) {
    const bool to_everyone = kind == StepKind::reduce_from && step.peer == kEveryone;
    if (!to_everyone && (step.peer < 0 || step.peer >= call_.ranks))
      fail(rank, round, fmt::format("peer {} does not exist", step.peer));
    if (step.peer == rank && kind != StepKind::reduce_from) fail(rank, round, "its peer is itself");
    if (is_message(kind) == algorithm_.shared)
      fail(rank, round, algorithm_.shared ? "a message in a shared schedule" : "a shared step in a message schedule");
  }
  if (!sends && step.to.buffer == Buffer::input) fail(rank, round, fmt::format("writes {}", text(step.to)));
  if (!sends && !receives && step.from.count != step.to.count)
    fail(rank, round, fmt::format("{} go to {}", text(step.from), text(step.to)));
  if ((sends ? step.from : step.to).count == 0 && call_.what != Collective::barrier)
    fail(rank, round, "a step of no elements");
  if (kind == StepKind::read || kind == StepKind::reduce_from) check_shared_step(rank, round, step);
  if (is_local(kind) || sends) check_slice(rank, round, rank, step.from);
  if (is_local(kind) || receives || kind == StepKind::read) check_slice(rank, round, rank, step.to);
  if (kind == StepKind::combine)
    check_slice(rank, round, rank,
                {step.from.buffer, step.from.offset + (call_.ranks - 1) * step.stride, step.from.count});
}

// Runs `what`; its violations tell whether they are of the in-place run.
template <class What>
void said_of(const Memory& memory, What what) {
  try {
    what();
  } catch (const Violation& violation) {
    if (!memory.is_in_place()) throw;
    throw Violation(fmt::format("in place: {}", violation.what()));
  }
}

void Check::run_steps(Memory& memory, int round) const {
  memory.begin_round(round);
  for (int rank = 0; rank < call_.ranks; ++rank)
    for (const Step& step : rounds_[rank])
      if (is_local(step.kind)) memory.local(rank, step);
  exchange(memory);
}

void Check::exchange(Memory& memory) const {
  for (const Message& m : messages_)
    memory.receive(m.receiver, m.receive, rounds_[m.receiver][m.receive], m.sender, m.send, rounds_[m.sender][m.send]);
  if (!algorithm_.shared) return;
  for (int rank = 0; rank < call_.ranks; ++rank)
    for (int i = 0; i < static_cast<int>(rounds_[rank].size()); ++i) {
      if (rounds_[rank][i].kind == StepKind::read) memory.read(rank, i, rounds_[rank][i]);
      if (rounds_[rank][i].kind == StepKind::reduce_from) memory.reduce_from(rank, i, rounds_[rank][i]);
    }
}

// A signal carries what its sender knew when the round began.
void Check::hear() {
  const auto before = heard_;
  for (const Message& m : messages_)
    for (int r = 0; r < call_.ranks; ++r)
      if (before[m.sender][r]) heard_[m.receiver][r] = true;
}

void Check::run_round(int round) {
  for (int rank = 0; rank < call_.ranks; ++rank) {
    rounds_[rank].clear();
    schedules_[rank].fill(round, rounds_[rank]);
    bool exchanging = false;
    for (const Step& step : rounds_[rank]) {
      check_step(rank, round, step);
      if (is_local(step.kind) && exchanging) fail(rank, round, "a local step is listed after an exchange");
      exchanging = !is_local(step.kind);
    }
  }
  messages_.clear();
  if (!algorithm_.shared && !match(rounds_, messages_)) explain_mismatch(schedules_);
  for (const Message& m : messages_)
    if (const auto sent = rounds_[m.sender][m.send].from.count, taken = rounds_[m.receiver][m.receive].to.count;
        sent != taken)
      fail(m.receiver, round, fmt::format("receives {} elements of rank {}, which sends {}", taken, m.sender, sent));
  for (Memory& memory : memories_) said_of(memory, [&] { run_steps(memory, round); });
  if (call_.what == Collective::barrier) hear();
}

Value Check::canonical_sum(std::size_t source) {
  return symbols_.fold(0, call_.ranks, [&](int rank) { return symbols_.element(rank, source); });
}

// `found` must be the sum over all ranks of element `source` of their inputs.
void Check::check_value(int rank, std::size_t index, Value found, std::size_t source) {
  if (proven_.size() <= source) proven_.resize(source + 1, kNothing);
  if (proven_[source] == found) return;
  const auto wrong = [&](const std::string& what) {
    throw Violation(fmt::format("rank {}: element {} of the result {}", rank, index, what));
  };
  if (symbols_.terms(found) > 4 * static_cast<std::uint64_t>(call_.ranks))
    wrong(fmt::format("sums {} contributions of {} ranks", symbols_.terms(found), call_.ranks));
  std::vector<int> times(call_.ranks, 0);
  for (Value element : symbols_.elements_of(found)) {
    const int from = symbols_.rank_of(element);
    if (symbols_.index_of(element) != source)
      wrong(fmt::format("holds element {} of rank {}'s input", symbols_.index_of(element), from));
    if (++times[from] > 1) wrong(fmt::format("counts rank {}'s contribution twice", from));
  }
  for (int r = 0; r < call_.ranks; ++r)
    if (times[r] == 0) wrong(fmt::format("lacks rank {}'s contribution", r));
  if (algorithm_.canonical && found != canonical_sum(source)) wrong("is not summed in the canonical order");
  proven_[source] = found;
}

void Check::check_result(const Memory& memory) {
  const int P = call_.ranks;
  for (int rank = 0; rank < P; ++rank) {
    const std::size_t size = buffer_size(call_, rank, Buffer::output, schedules_[rank]);
    const bool in_blocks = has_blocks(call_.what) && size > call_.count;
    for (std::size_t i = 0; i < size; ++i) {
      const Value found = memory.at(rank, Buffer::output, i);
      const int block = in_blocks ? static_cast<int>(i / call_.stride) : 0;
      const std::size_t within = in_blocks ? i % call_.stride : i;
      if (within >= call_.count) {
        if (found == kNothing) continue;
        throw Violation(fmt::format("rank {}: element {} of output lies between blocks and was written", rank, i));
      }
      if (found == kNothing) throw Violation(fmt::format("rank {}: element {} of the result is missing", rank, i));
      const std::size_t own = rank * call_.stride + within;
      switch (call_.what) {
        case Collective::all_reduce:
        case Collective::reduce:
          check_value(rank, i, found, i);
          continue;
        case Collective::reduce_scatter:
          check_value(rank, i, found, own);
          continue;
        default:
          break;
      }
      const bool from_root = call_.what == Collective::broadcast || call_.what == Collective::scatter;
      const bool takes_block = call_.what == Collective::scatter || call_.what == Collective::all_to_all;
      const int source = from_root ? call_.root : block;
      if (found != symbols_.element(source, takes_block ? own : within))
        throw Violation(fmt::format("rank {}: element {} of the result is not element {} of rank {}'s input", rank, i,
                                    takes_block ? own : within, source));
    }
  }
}

void Check::run() {
  const int rounds = schedules_[0].rounds;
  for (int rank = 0; rank < call_.ranks; ++rank)
    if (schedules_[rank].rounds != rounds)
      throw Violation(fmt::format("rank {} has {} rounds, rank 0 has {}", rank, schedules_[rank].rounds, rounds));
  for (int round = 0; round < rounds; ++round) run_round(round);
  for (const Memory& memory : memories_) said_of(memory, [&] { check_result(memory); });
  if (call_.what != Collective::barrier) return;
  if (algorithm_.shared) {
    if (rounds == 0) throw Violation("a barrier needs a round for ranks to meet");
    return;
  }
  for (int rank = 0; rank < call_.ranks; ++rank)
    for (int r = 0; r < call_.ranks; ++r)
      if (!heard_[rank][r]) throw Violation(fmt::format("rank {} leaves without having heard of rank {}", rank, r));
}

std::string describe(const Algorithm& algorithm, const Call& call) {
  std::string text = fmt::format("{} {}, {} ranks, count {}", name(call.what), algorithm.name, call.ranks, call.count);
  if (has_blocks(call.what)) text += fmt::format(", stride {}", call.stride);
  if (has_root(call.what)) text += fmt::format(", root {}", call.root);
  return text;
}

}  // namespace
}  // namespace checking

std::optional<std::string> check(const Algorithm& algorithm, const Call& call, std::span<const Schedule> schedules) {
  try {
    checking::Check(algorithm, call, schedules).run();
    return std::nullopt;
  } catch (const checking::Violation& violation) {
    return fmt::format("{}: {}", checking::describe(algorithm, call), violation.what());
  }
}

std::optional<std::string> check(const Algorithm& algorithm, const Call& call) {
  std::vector<Schedule> schedules;
  Call mine = call;
  for (mine.rank = 0; mine.rank < call.ranks; ++mine.rank) schedules.push_back(algorithm.plan(mine));
  return check(algorithm, call, schedules);
}

std::vector<Call> calls_to_check(Collective what, int ranks) {
  const auto P = static_cast<std::size_t>(ranks);
  std::set<std::pair<std::size_t, std::size_t>> counts;  // with strides
  if (what == Collective::barrier)
    counts = {{0, 0}};
  else if (has_blocks(what))
    counts = {{0, 0}, {1, 1}, {3, 3}, {2, 5}};
  else
    for (std::size_t count : {std::size_t{0}, std::size_t{1}, P - 1, P, 2 * P + 3}) counts.emplace(count, count);
  std::set<int> roots{0};
  if (has_root(what)) roots = {0, ranks / 2, ranks - 1};
  std::vector<Call> calls;
  for (auto [count, stride] : counts)
    for (int root : roots) calls.push_back({what, 0, ranks, root, count, stride});
  return calls;
}

std::string_view counts_to_check(Collective what) {
  if (what == Collective::barrier) return "–";
  return has_blocks(what) ? "0 1 3, 2 with gaps" : "0 1 P−1 P 2P+3";
}

Proof prove(const Algorithm& algorithm, std::span<const int> ranks, const std::function<void(int)>& progress) {
  Proof proof;
  for (const int P : ranks) {
    if (progress) progress(P);
    for (const Call& call : calls_to_check(algorithm.what, P)) {
      proof.rounds = algorithm.plan(call).rounds;
      proof.error = check(algorithm, call);
      if (proof.error) return proof;
      ++proof.cases;
    }
    proof.ranks.push_back(P);
  }
  return proof;
}

}  // namespace trireme

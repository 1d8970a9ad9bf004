#include "trireme/collective/check/random_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "trireme/base/mix.h"
#include "trireme/collective/schedules/algorithms.h"

namespace trireme {
namespace {

// Numbers that every rank draws alike.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(mixed(seed)) {}
  std::uint64_t next() { return state_ = mixed(state_); }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

struct RandomCall {
  Collective what;
  DType dtype;
  Op op;
  int root;
  std::size_t count;           // of a block
  const Algorithm* algorithm;  // none: auto
  std::uint64_t salt;          // of the values
  bool started;                // asynchronous
  bool in_place;
};

// ---- What a call must give: one element at a time, in double, without the code under test ----

// A small value that every type holds exactly, and so do sums of dozens and products of any number of them.
int value_of(const RandomCall& call, int rank, std::size_t i) {
  const auto drawn = mixed(call.salt ^ static_cast<std::uint64_t>(rank) << 48 ^ i);
  if (reduces(call.what) && call.op == Op::prod) return rank < 6 ? static_cast<int>(1 + drawn % 2) : 1;
  return static_cast<int>(drawn % 4);
}

double fold_of(const RandomCall& call, int ranks, std::size_t i) {
  int total = value_of(call, 0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const int next = value_of(call, rank, i);
    switch (call.op) {
      case Op::sum:
      case Op::avg:
        total += next;
        break;
      case Op::min:
        total = std::min(total, next);
        break;
      case Op::max:
        total = std::max(total, next);
        break;
      case Op::prod:
        total *= next;
        break;
      case Op::band:
        total &= next;
        break;
      case Op::bor:
        total |= next;
        break;
      case Op::bxor:
        total ^= next;
        break;
    }
  }
  if (call.op != Op::avg) return total;
  return is_float(call.dtype) ? static_cast<double>(total) / ranks : total / ranks;
}

double wanted(const RandomCall& call, int rank, int ranks, std::size_t i) {
  const auto mine = static_cast<std::size_t>(rank) * call.count + i;
  switch (call.what) {
    case Collective::broadcast:
      return value_of(call, call.root, i);
    case Collective::scatter:
      return value_of(call, call.root, mine);
    case Collective::gather:
    case Collective::all_gather:
      return value_of(call, static_cast<int>(i / call.count), i % call.count);
    case Collective::all_to_all:
      return value_of(call, static_cast<int>(i / call.count),
                      static_cast<std::size_t>(rank) * call.count + i % call.count);
    case Collective::reduce:
    case Collective::all_reduce:
      return fold_of(call, ranks, i);
    case Collective::reduce_scatter:
      return fold_of(call, ranks, mine);
    case Collective::barrier:
      break;
  }
  return 0;
}

// ---- Elements in memory ----

template <typename T>
void store(std::byte* base, std::size_t i, T value) {
  std::memcpy(base + i * sizeof(T), &value, sizeof(T));
}
template <typename T>
double load(const std::byte* base, std::size_t i) {
  T value;
  std::memcpy(&value, base + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

// 16-bit floats of the numbers 0 to 3, and back for any finite one.
constexpr std::uint16_t kSmallHalf[] = {0, 0x3c00, 0x4000, 0x4200};
constexpr std::uint16_t kSmallBFloat[] = {0, 0x3f80, 0x4000, 0x4040};
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits >> 15 != 0 ? -value : value;
}

void put_element(DType type, std::byte* base, std::size_t i, int value) {
  switch (type) {
    case DType::f32:
      return store(base, i, static_cast<float>(value));
    case DType::f64:
      return store(base, i, static_cast<double>(value));
    case DType::f16:
      return store(base, i, kSmallHalf[value]);
    case DType::bf16:
      return store(base, i, kSmallBFloat[value]);
    case DType::i8:
    case DType::u8:
      return store(base, i, static_cast<std::uint8_t>(value));
    case DType::i32:
      return store(base, i, value);
    case DType::i64:
      return store(base, i, std::int64_t{value});
  }
}

double get_element(DType type, const std::byte* base, std::size_t i) {
  switch (type) {
    case DType::f32:
      return load<float>(base, i);
    case DType::f64:
      return load<double>(base, i);
    case DType::f16:
      return half_value(static_cast<std::uint16_t>(load<std::uint16_t>(base, i)));
    case DType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(base, i)) << 16);
    case DType::i8:
      return load<std::int8_t>(base, i);
    case DType::u8:
      return load<std::uint8_t>(base, i);
    case DType::i32:
      return load<std::int32_t>(base, i);
    case DType::i64:
      return load<std::int64_t>(base, i);
  }
  return 0;
}

// How far a mean may be off: it is divided in f32 or f64 and rounded to the type.
double slack_of(const RandomCall& call, double value) {
  if (!reduces(call.what) || call.op != Op::avg || !is_float(call.dtype)) return 0;
  return std::abs(value) * (call.dtype == DType::bf16 ? 1e-2 : call.dtype == DType::f16 ? 1e-3 : 1e-6);
}

// ---- Drawing and making calls ----

RandomCall draw_call(Draws& draws, int ranks, bool shared, std::size_t most) {
  RandomCall call{};
  call.what = kCollectives[static_cast<std::size_t>(draws.below(static_cast<int>(kCollectives.size())))];
  call.dtype = kDTypes[static_cast<std::size_t>(draws.below(static_cast<int>(std::size(kDTypes))))];
  do {
    call.op = kOps[static_cast<std::size_t>(draws.below(static_cast<int>(std::size(kOps))))];
  } while (!defined(call.dtype, call.op));
  call.root = draws.below(ranks);
  // All orders of magnitude alike, and none.
  const int width = draws.below(std::bit_width(most));
  const std::size_t blocks = has_blocks(call.what) ? static_cast<std::size_t>(ranks) : 1;
  call.count = draws.one_in(16) ? 0 : (std::size_t{1} << width | (draws.next() & ((std::size_t{1} << width) - 1)));
  call.count = call.count == 0 ? 0 : std::max<std::size_t>(call.count / blocks, 1);
  if (call.what == Collective::barrier) call.count = 0;
  const auto choices = algorithms_for(call.what);
  const Algorithm* drawn = choices[static_cast<std::size_t>(draws.below(static_cast<int>(choices.size())))];
  if (draws.one_in(3) && (shared || !drawn->shared)) call.algorithm = drawn;
  call.salt = draws.next();
  call.started = draws.one_in(3);
  call.in_place = call.what == Collective::all_reduce && draws.one_in(2);
  return call;
}

std::size_t elements_in(const RandomCall& call, int rank, int ranks) {
  const auto all = call.count * static_cast<std::size_t>(ranks);
  if (call.what == Collective::scatter) return rank == call.root ? all : 0;
  return call.what == Collective::reduce_scatter || call.what == Collective::all_to_all ? all : call.count;
}

std::size_t elements_out(const RandomCall& call, int rank, int ranks) {
  const auto all = call.count * static_cast<std::size_t>(ranks);
  if (call.what == Collective::gather) return rank == call.root ? all : 0;
  if (call.what == Collective::reduce) return rank == call.root ? call.count : 0;
  return call.what == Collective::all_gather || call.what == Collective::all_to_all ? all : call.count;
}

template <typename Calls>
auto make_call(Calls&& calls, const RandomCall& call, ConstView in, View out) {
  switch (call.what) {
    case Collective::broadcast:
      return calls.broadcast(out, call.root);
    case Collective::scatter:
      return calls.scatter(in, out, call.root);
    case Collective::gather:
      return calls.gather(in, out, call.root);
    case Collective::reduce:
      return calls.reduce(in, out, call.op, call.root);
    case Collective::all_gather:
      return calls.all_gather(in, out);
    case Collective::reduce_scatter:
      return calls.reduce_scatter(in, out, call.op);
    case Collective::all_reduce:
      return calls.all_reduce(in, out, call.op);
    case Collective::all_to_all:
      return calls.all_to_all(in, out);
    case Collective::barrier:
      break;
  }
  return calls.barrier();
}

// One rank's buffers and result of one call.
class Attempt {
 public:
  Attempt(Communicator& group, const RandomCall& call, bool heap)
      : call_(call), rank_(group.rank()), ranks_(group.size()) {
    const auto element = size_of(call.dtype);
    const auto ins = elements_in(call, rank_, ranks_), outs = elements_out(call, rank_, ranks_);
    in_ = room(group, ins * element, heap);
    out_ = call.in_place ? in_ : room(group, outs * element, heap);
    std::memset(out_.get(), 0x5a, outs * element);
    auto* from = call.what == Collective::broadcast ? out_.get() : in_.get();
    const bool gives = call.what != Collective::broadcast || rank_ == call.root;
    for (std::size_t i = 0; gives && i < ins; ++i) put_element(call.dtype, from, i, value_of(call, rank_, i));
    group.set_algorithm(name(call.what), call.algorithm != nullptr ? call.algorithm->name : "auto");
    const ConstView input(in_.get(), ins, call.dtype);
    const View output(out_.get(), outs, call.dtype);
    if (call.started) {
      work_ = make_call(group.async(), call, input, output);
    } else {
      make_call(group, call, input, output);
    }
  }

  // Once the call is done.
  void judge(RandomReport& report, std::uint64_t number) {
    work_.wait();
    const auto outs = elements_out(call_, rank_, ranks_);
    for (std::size_t i = 0; i < outs; ++i) {
      const double want = wanted(call_, rank_, ranks_, i), got = get_element(call_.dtype, out_.get(), i);
      if (std::abs(got - want) <= slack_of(call_, want)) continue;
      ++report.wrong;
      if (!report.first.empty()) continue;
      report.first = fmt::format("call {}, {} of {} {} ({}, {}, root {}): element {} on rank {} of {} is {}, not {}",
                                 number, name(call_.what), call_.count, name(call_.dtype), name(call_.op),
                                 call_.algorithm != nullptr ? call_.algorithm->name : "auto", call_.root, i, rank_,
                                 ranks_, got, want);
    }
    report.elements += outs;
  }

 private:
  static std::shared_ptr<std::byte[]> room(Communicator& group, std::size_t bytes, bool heap) {
    return heap ? group.allocate_bytes(bytes + 1) : std::shared_ptr<std::byte[]>(new std::byte[bytes + 1]);
  }

  RandomCall call_;
  int rank_, ranks_;
  std::shared_ptr<std::byte[]> in_, out_;
  Work work_;
};

// Lets ranks end at different times.
void dawdle(std::uint64_t drawn) {
  if (drawn % 4 == 0) std::this_thread::yield();
  if (drawn % 16 == 1) std::this_thread::sleep_for(std::chrono::microseconds(drawn / 16 % 300));
}

// Ends the group, and uses at once what memory it gave back: who reads it still, reads that.
void end_group(Communicator& world, std::optional<Communicator>& group,
               std::vector<std::shared_ptr<std::byte[]>>& used) {
  group.reset();
  for (int width = 10; width <= 18; ++width) {
    const auto bytes = std::size_t{1} << width;
    used.push_back(world.allocate_bytes(bytes));
    std::memset(used.back().get(), 0xa5, bytes);
  }
}

// Everyone draws the same; `own` only decides when, and in which memory.
void live_and_end(Communicator& world, std::optional<Communicator>& group, Draws draws, Draws& own, int calls,
                  const RandomCalls& how, std::uint64_t begun, RandomReport& report) {
  const bool shared = group->transport() != "tcp", same_memory = draws.one_in(2), heap = draws.one_in(3);
  const bool ends_first = draws.one_in(2);
  std::vector<std::shared_ptr<std::byte[]>> used;
  std::vector<Attempt> attempts;
  for (int i = 0; i < calls; ++i) {
    const auto call = draw_call(draws, group->size(), shared, how.most);
    attempts.emplace_back(*group, call, same_memory ? heap : own.one_in(2));
  }
  dawdle(own.next());
  if (ends_first) end_group(world, group, used);  // a started call goes on without it
  for (auto& attempt : attempts) attempt.judge(report, begun++);
}

// A wrong element's words, of the lowest rank that has one, at every rank.
std::string first_of_all(Communicator& world, const std::string& mine) {
  std::vector<std::int32_t> who{mine.empty() ? world.size() : world.rank()};
  world.all_reduce(who, Op::min);
  if (who[0] == world.size()) return "";
  std::vector<std::uint8_t> text(512);
  std::copy_n(mine.begin(), std::min(mine.size(), text.size()), text.begin());
  world.broadcast(text, who[0]);
  return {text.begin(), std::find(text.begin(), text.end(), 0)};
}

}  // namespace

RandomReport make_random_calls(Communicator& world, const RandomCalls& how) {
  RandomReport mine, all;
  Draws draws(how.seed), own(mixed(how.seed) + static_cast<std::uint64_t>(world.rank()) + 1);
  std::vector<Communicator> kept;
  while (all.calls < how.calls) {
    const int groups = 1 + draws.below(std::min(3, world.size())), calls = draws.one_in(4) ? 3 : 1;
    std::vector<int> color(static_cast<std::size_t>(world.size())), key(color.size());
    std::vector<bool> present(static_cast<std::size_t>(groups));
    for (std::size_t rank = 0; rank < color.size(); ++rank) {
      color[rank] = draws.one_in(12) ? -1 : draws.below(groups);
      key[rank] = draws.below(4);
      if (color[rank] >= 0) present[static_cast<std::size_t>(color[rank])] = true;
    }
    const auto formed = static_cast<std::uint64_t>(std::ranges::count(present, true));
    const auto begun = all.calls;
    if (how.progress) how.progress(begun);
    all.groups += formed;
    all.calls += formed * static_cast<std::uint64_t>(calls);
    const auto me = static_cast<std::size_t>(world.rank());
    auto group = world.split(color[me], key[me]);
    const auto seed = draws.next();
    const bool keeps = draws.one_in(8);
    if (!group) continue;
    live_and_end(world, group, Draws(seed + static_cast<std::uint64_t>(color[me])), own, calls, how, begun, mine);
    if (keeps && group) kept.push_back(std::move(*group));
    if (kept.size() > 2) kept.erase(kept.begin());
  }
  std::vector<std::int64_t> sums{static_cast<std::int64_t>(mine.elements), static_cast<std::int64_t>(mine.wrong)};
  world.all_reduce(sums);
  all.elements = static_cast<std::uint64_t>(sums[0]);
  all.wrong = static_cast<std::uint64_t>(sums[1]);
  all.first = first_of_all(world, mine.first);
  return all;
}

}  // namespace trireme

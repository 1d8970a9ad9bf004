#include "trireme/cli/bench/pattern.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

constexpr int kPeriod = 13;
constexpr std::size_t kTile = kPeriod * 512;  // elements
constexpr int kAllRanks = -1;

bool adds(Collective what) {
  return what == Collective::reduce || what == Collective::all_reduce || what == Collective::reduce_scatter;
}

// The largest whole number up to which all are exact; 0 where arithmetic wraps and is exact anyway.
std::int64_t exact_limit(DType type) {
  switch (type) {
    case DType::f32:
      return 1LL << 24;
    case DType::f64:
      return 1LL << 53;
    case DType::f16:
      return 1LL << 11;
    case DType::bf16:
      return 1LL << 8;
    default:
      return 0;
  }
}

bool narrow(DType type) { return size_of(type) < 4; }

// A whole number as the element type would hold it.
std::int64_t wrap(DType type, std::int64_t value) {
  switch (type) {
    case DType::i8:
      return static_cast<std::int8_t>(value);
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    case DType::i32:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}

std::int64_t input_value(const Job& job, int rank, int buffer, std::size_t i) {
  auto base = static_cast<std::int64_t>((i % kPeriod * 5 + static_cast<std::size_t>(rank * 3 + buffer * 7)) % kPeriod);
  if (!adds(job.call.what)) return base;
  switch (job.op) {
    case Op::sum:
      return narrow(job.dtype) ? base % 2 : base;
    case Op::avg:
      return wrap(job.dtype, job.call.ranks * (narrow(job.dtype) ? base % 2 : base));
    case Op::prod:
      return wrap(job.dtype, base % 2 ? 1 : -1);
    case Op::min:
    case Op::max:
      return base;
    default:
      return wrap(job.dtype, base * 37 + 11);
  }
}

std::int64_t combine(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::sum:
    case Op::avg:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case Op::prod:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    case Op::band:
      return a & b;
    case Op::bor:
      return a | b;
    case Op::bxor:
      return a ^ b;
  }
  return 0;
}

std::int64_t reduced_value(const Job& job, int buffer, int uses, std::size_t i) {
  const int ranks = job.call.ranks;
  auto once = [&](auto&& value_of) {
    std::int64_t sum = value_of(0);
    for (int rank = 1; rank < ranks; ++rank) sum = wrap(job.dtype, combine(job.op, sum, value_of(rank)));
    return job.op == Op::avg ? sum / ranks : sum;
  };
  std::int64_t value = once([&](int rank) { return input_value(job, rank, buffer, i); });
  for (int use = 1; use < uses; ++use) value = once([&](int) { return value; });
  return value;
}

void encode(DType type, std::int64_t value, std::byte* out) {
  auto put = [&](auto typed) { std::memcpy(out, &typed, sizeof typed); };
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  switch (type) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(static_cast<double>(value));
    case DType::bf16:
      return put(static_cast<std::uint16_t>(bits >> 16));
    case DType::f16: {
      // Sign, exponent moved from bias 127 to 15, ten bits of mantissa: exact for whole numbers up to 2,048.
      if (value == 0) return put(std::uint16_t{0});
      std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
      return put(static_cast<std::uint16_t>(bits >> 31 << 15 | exponent << 10 | (bits >> 13 & 0x3ff)));
    }
    case DType::i8:
    case DType::u8:
      return put(static_cast<std::uint8_t>(value));
    case DType::i32:
      return put(static_cast<std::int32_t>(value));
    case DType::i64:
      return put(value);
  }
}

// kTile elements that repeat one period; `source` is a rank's input or, for kAllRanks, the reduced result.
std::vector<std::byte> make_tile(const Job& job, int source, int buffer, int uses, std::size_t elements) {
  const std::size_t size = size_of(job.dtype);
  // Twice the period at least, so that comparing may start at any phase.
  const std::size_t length = std::min(kTile, (elements / kPeriod + 2) * kPeriod);
  std::vector<std::byte> tile(length * size);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    auto value = source == kAllRanks ? reduced_value(job, buffer, uses, i) : input_value(job, source, buffer, i);
    for (std::size_t j = i; j < length; j += kPeriod) encode(job.dtype, value, &tile[j * size]);
  }
  return tile;
}

// Visits `elements` elements in pieces that match the tile from element `first` of the source on.
template <typename Visit>
void by_tiles(std::size_t first, std::size_t elements, std::size_t tile_elements, Visit visit) {
  for (std::size_t done = 0; done < elements;) {
    std::size_t phase = (first + done) % kPeriod;
    std::size_t n = std::min(elements - done, tile_elements - phase);
    visit(done, phase, n);
    done += n;
  }
}

// Compares one block of output with what `source` holds from element `first` on.
std::size_t block_errors(const Job& job, int source, int buffer, int uses, std::size_t first, std::size_t elements,
                         const std::byte* output) {
  const std::size_t size = size_of(job.dtype);
  auto tile = make_tile(job, source, buffer, uses, elements);
  std::size_t errors = 0;
  by_tiles(first, elements, tile.size() / size, [&](std::size_t at, std::size_t phase, std::size_t n) {
    const std::byte* have = output + at * size;
    const std::byte* want = &tile[phase * size];
    if (std::memcmp(have, want, n * size) == 0) return;
    for (std::size_t i = 0; i < n; ++i) errors += std::memcmp(have + i * size, want + i * size, size) != 0;
  });
  return errors;
}

}  // namespace

bool in_place(Collective what) { return what == Collective::all_reduce || what == Collective::broadcast; }

std::size_t input_elements(const Call& call) {
  switch (call.what) {
    case Collective::barrier:
      return 0;
    case Collective::scatter:
      return call.rank == call.root ? call.count * call.ranks : 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return call.count * call.ranks;
    default:
      return call.count;
  }
}

std::size_t output_elements(const Call& call) {
  switch (call.what) {
    case Collective::barrier:
      return 0;
    case Collective::gather:
      return call.rank == call.root ? call.count * call.ranks : 0;
    case Collective::reduce:
      return call.rank == call.root ? call.count : 0;
    case Collective::all_gather:
    case Collective::all_to_all:
      return call.count * call.ranks;
    default:
      return call.count;
  }
}

void require_exact(const Job& job) {
  std::int64_t limit = exact_limit(job.dtype);
  if (limit == 0 || !adds(job.call.what) || (job.op != Op::sum && job.op != Op::avg)) return;
  std::int64_t largest = (narrow(job.dtype) ? 1 : kPeriod - 1) * static_cast<std::int64_t>(job.call.ranks);
  if (job.op == Op::avg) largest *= job.call.ranks;
  if (largest > limit) {
    throw ConfigError("--dtype " + std::string(name(job.dtype)) + " is too narrow to validate " +
                      std::string(name(job.op)) + " exactly over " + std::to_string(job.call.ranks) +
                      " ranks; use f32 or fewer ranks");
  }
}

int most_uses(const Job& job) {
  constexpr int kPlenty = 1 << 20;
  constexpr int kMost = 64;  // the closed form is computed use by use
  if (job.call.what != Collective::all_reduce) return kPlenty;
  std::int64_t limit = exact_limit(job.dtype);
  if (job.op != Op::sum || job.call.ranks == 1 || limit == 0) return kMost;
  std::int64_t largest = (narrow(job.dtype) ? 1 : kPeriod - 1) * static_cast<std::int64_t>(job.call.ranks);
  int uses = 1;
  for (; largest * job.call.ranks <= limit && uses < kMost; ++uses) largest *= job.call.ranks;
  return uses;
}

void fill(const Job& job, int buffer, std::byte* input, std::byte* output) {
  const std::size_t size = size_of(job.dtype);
  const std::size_t elements = input_elements(job.call);
  auto tile = make_tile(job, job.call.rank, buffer, 0, elements);
  by_tiles(0, elements, tile.size() / size, [&](std::size_t at, std::size_t phase, std::size_t n) {
    std::memcpy(input + at * size, &tile[phase * size], n * size);
  });
  if (output != input) std::fill_n(output, output_elements(job.call) * size, std::byte{0xff});
}

std::size_t count_errors(const Job& job, int buffer, int uses, const std::byte* output) {
  const Call& call = job.call;
  const std::size_t c = call.count;
  if (output_elements(call) == 0 || uses == 0) return 0;
  if (adds(call.what)) {
    std::size_t first = call.what == Collective::reduce_scatter ? c * call.rank : 0;
    // Out of place the input stays, so every use gives the same.
    int passes = in_place(call.what) ? uses : 1;
    return block_errors(job, kAllRanks, buffer, passes, first, c, output);
  }
  if (call.what == Collective::broadcast) return block_errors(job, call.root, buffer, 1, 0, c, output);
  if (call.what == Collective::scatter) return block_errors(job, call.root, buffer, 1, c * call.rank, c, output);
  std::size_t errors = 0;
  for (int source = 0; source < call.ranks; ++source) {
    std::size_t first = call.what == Collective::all_to_all ? c * call.rank : 0;
    errors += block_errors(job, source, buffer, 1, first, c, output + c * source * size_of(job.dtype));
  }
  return errors;
}

}  // namespace trireme::bench

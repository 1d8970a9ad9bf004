// What a collective must give, computed plainly: inputs by a formula, results one element at a time in double or
// 64-bit integers. Shares no code with what it checks.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/collective/schedule.h"

namespace trireme::test {

// A small value that every type holds exactly, and so are sums and products of a few dozen of them.
inline int input_value(int rank, std::size_t element, Op op) {
  auto mixed = (static_cast<std::uint64_t>(rank) * 7919 + element * 104729) % 1009;
  if (op == Op::prod) return mixed % 11 == 0 ? 2 : 1;
  return static_cast<int>(mixed % 3);
}

inline double f16_to_double(std::uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double mantissa = bits & 1023;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits >> 15 ? -value : value;
}
inline std::uint16_t small_to_f16(double value) {
  if (value == 0) return 0;
  int exponent;
  double fraction = std::frexp(value, &exponent);
  return static_cast<std::uint16_t>((exponent + 14) << 10 | (static_cast<int>(std::lround(fraction * 2048)) & 1023));
}
inline double bf16_to_double(std::uint16_t bits) {
  std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
inline std::uint16_t small_to_bf16(double value) {
  auto f = static_cast<float>(value);
  std::uint32_t word;
  std::memcpy(&word, &f, 4);
  return static_cast<std::uint16_t>(word >> 16);
}

inline void put(DType type, void* base, std::size_t i, double value) {
  switch (type) {
    case DType::f32:
      static_cast<float*>(base)[i] = static_cast<float>(value);
      return;
    case DType::f64:
      static_cast<double*>(base)[i] = value;
      return;
    case DType::f16:
      static_cast<std::uint16_t*>(base)[i] = small_to_f16(value);
      return;
    case DType::bf16:
      static_cast<std::uint16_t*>(base)[i] = small_to_bf16(value);
      return;
    case DType::i8:
      static_cast<std::int8_t*>(base)[i] = static_cast<std::int8_t>(value);
      return;
    case DType::u8:
      static_cast<std::uint8_t*>(base)[i] = static_cast<std::uint8_t>(value);
      return;
    case DType::i32:
      static_cast<std::int32_t*>(base)[i] = static_cast<std::int32_t>(value);
      return;
    case DType::i64:
      static_cast<std::int64_t*>(base)[i] = static_cast<std::int64_t>(value);
      return;
  }
}
inline double get(DType type, const void* base, std::size_t i) {
  switch (type) {
    case DType::f32:
      return static_cast<const float*>(base)[i];
    case DType::f64:
      return static_cast<const double*>(base)[i];
    case DType::f16:
      return f16_to_double(static_cast<const std::uint16_t*>(base)[i]);
    case DType::bf16:
      return bf16_to_double(static_cast<const std::uint16_t*>(base)[i]);
    case DType::i8:
      return static_cast<const std::int8_t*>(base)[i];
    case DType::u8:
      return static_cast<const std::uint8_t*>(base)[i];
    case DType::i32:
      return static_cast<const std::int32_t*>(base)[i];
    case DType::i64:
      return static_cast<double>(static_cast<const std::int64_t*>(base)[i]);
  }
  return 0;
}

// What element `i` of all ranks' inputs comes to.
inline double reduced(DType type, Op op, int ranks, std::size_t i) {
  auto total = static_cast<double>(input_value(0, i, op));
  for (int r = 1; r < ranks; ++r) {
    const int v = input_value(r, i, op);
    switch (op) {
      case Op::sum:
      case Op::avg:
        total += v;
        break;
      case Op::min:
        total = std::min<double>(total, v);
        break;
      case Op::max:
        total = std::max<double>(total, v);
        break;
      case Op::prod:
        total *= v;
        break;
      case Op::band:
        total = static_cast<int>(total) & v;
        break;
      case Op::bor:
        total = static_cast<int>(total) | v;
        break;
      case Op::bxor:
        total = static_cast<int>(total) ^ v;
        break;
    }
  }
  if (op != Op::avg) return total;
  return is_float(type) ? total / ranks : std::trunc(total / ranks);
}

// Elements in the input and output of a rank, and the value each output element must have.
inline std::size_t input_elements(Collective what, int rank, int ranks, int root, std::size_t count) {
  switch (what) {
    case Collective::broadcast:
      return count;
    case Collective::scatter:
      return rank == root ? count * ranks : 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return count * ranks;
    case Collective::barrier:
      return 0;
    default:
      return count;
  }
}
inline std::size_t output_elements(Collective what, int rank, int ranks, int root, std::size_t count) {
  switch (what) {
    case Collective::gather:
      return rank == root ? count * ranks : 0;
    case Collective::reduce:
      return rank == root ? count : 0;
    case Collective::all_gather:
    case Collective::all_to_all:
      return count * ranks;
    case Collective::barrier:
      return 0;
    default:
      return count;
  }
}
inline double expected(Collective what, DType type, Op op, int rank, int ranks, int root, std::size_t count,
                       std::size_t i) {
  switch (what) {
    case Collective::broadcast:
      return input_value(root, i, Op::sum);
    case Collective::scatter:
      return input_value(root, rank * count + i, Op::sum);
    case Collective::gather:
    case Collective::all_gather:
      return input_value(static_cast<int>(i / count), i % count, Op::sum);
    case Collective::all_to_all:
      return input_value(static_cast<int>(i / count), rank * count + i % count, Op::sum);
    case Collective::reduce:
    case Collective::all_reduce:
      return reduced(type, op, ranks, i);
    case Collective::reduce_scatter:
      return reduced(type, op, ranks, rank * count + i);
    case Collective::barrier:
      return 0;
  }
  return 0;
}

}  // namespace trireme::test

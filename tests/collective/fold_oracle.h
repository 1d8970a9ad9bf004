// What reductions must give, bit by bit: the canonical tree, with 16-bit floats converted by arithmetic on doubles, a
// way the kernels do not use.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/base/error.h"
#include "trireme/collective/schedule.h"

namespace trireme::reduce_test {

struct SmallFloat {
  int mantissa_bits, min_exponent, bias;
};
inline constexpr SmallFloat kF16{10, -14, 15}, kBF16{7, -126, 127};

inline float widen(const SmallFloat& format, std::uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
  const int special = 0x7fff >> format.mantissa_bits;
  double size = std::ldexp(mantissa, format.min_exponent - format.mantissa_bits);
  if (exponent == special) {
    size = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent > 0) {
    size = std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - format.bias - format.mantissa_bits);
  }
  return static_cast<float>(bits & 0x8000 ? -size : size);
}

inline std::uint16_t narrow(const SmallFloat& format, float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = (0x7fff >> format.mantissa_bits) << format.mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return sign;
  const double size = std::fabs(static_cast<double>(value));
  const int exponent = std::max(std::ilogb(size), format.min_exponent);
  // In units of the last place of this binade; 2·2^mantissa_bits units carry into the next exponent by themselves.
  const int units = static_cast<int>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const int bits = units + ((exponent - format.min_exponent) << format.mantissa_bits);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

template <class T>
T combine(Op op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::prod) return a * b;
    if (op == Op::sum || op == Op::avg) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool less = a < b || (a == b && std::signbit(a));
    return less == (op == Op::min) ? a : b;
  } else {
    using U = std::uint64_t;  // wraps without undefined behaviour
    switch (op) {
      case Op::min:
        return std::min(a, b);
      case Op::max:
        return std::max(a, b);
      case Op::prod:
        return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
      case Op::band:
        return static_cast<T>(a & b);
      case Op::bor:
        return static_cast<T>(a | b);
      case Op::bxor:
        return static_cast<T>(a ^ b);
      default:
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
  }
}

template <class T>
T tree(Op op, const T* values, int n) {
  if (n == 1) return values[0];
  const int left = canonical_split(n);
  return combine(op, tree(op, values, left), tree(op, values + left, n - left));
}

template <class T>
T quotient(T sum, int by) {
  if constexpr (std::is_floating_point_v<T>) return sum / static_cast<T>(by);
  return static_cast<T>(sum / by);
}

using Bytes = std::vector<std::byte>;

// Calls visit(get, put, T{}) where get(bytes, i) is element i as the type it is computed in.
template <class Visit>
void with_type(DType type, Visit visit) {
  const auto plain = [&]<class T>(T) {
    visit(
        [](const std::byte* at, std::size_t i) {
          T x;
          std::memcpy(&x, at + i * sizeof(T), sizeof(T));
          return x;
        },
        [](std::byte* at, std::size_t i, T x) { std::memcpy(at + i * sizeof(T), &x, sizeof(T)); }, T{});
  };
  const auto small = [&](SmallFloat format) {
    visit(
        [format](const std::byte* at, std::size_t i) {
          std::uint16_t x;
          std::memcpy(&x, at + 2 * i, 2);
          return widen(format, x);
        },
        [format](std::byte* at, std::size_t i, float x) {
          const std::uint16_t bits = narrow(format, x);
          std::memcpy(at + 2 * i, &bits, 2);
        },
        float{});
  };
  switch (type) {
    case DType::f32:
      return plain(float{});
    case DType::f64:
      return plain(double{});
    case DType::f16:
      return small(kF16);
    case DType::bf16:
      return small(kBF16);
    case DType::i8:
      return plain(std::int8_t{});
    case DType::u8:
      return plain(std::uint8_t{});
    case DType::i32:
      return plain(std::int32_t{});
    case DType::i64:
      return plain(std::int64_t{});
  }
}

inline Bytes expected_fold(DType type, Op op, const std::vector<Bytes>& ins, std::size_t elements) {
  Bytes out(elements * size_of(type));
  if (ins.size() == 1) return ins[0];
  with_type(type, [&]<class T>(auto get, auto put, T) {
    std::vector<T> values(ins.size());
    for (std::size_t i = 0; i < elements; ++i) {
      for (std::size_t r = 0; r < ins.size(); ++r) values[r] = get(ins[r].data(), i);
      T result = tree(op, values.data(), static_cast<int>(values.size()));
      if (op == Op::avg) result = quotient(result, static_cast<int>(ins.size()));
      put(out.data(), i, result);
    }
  });
  return out;
}

// The first element that differs, -1 if none. Any NaN equals any other.
inline std::ptrdiff_t first_difference(DType type, const std::byte* got, const std::byte* want, std::size_t elements) {
  const std::size_t size = size_of(type);
  if (elements == 0 || std::memcmp(got, want, elements * size) == 0) return -1;
  std::ptrdiff_t found = -1;
  with_type(type, [&](auto get, auto, auto) {
    for (std::size_t i = 0; i < elements && found < 0; ++i) {
      const auto a = get(got, i), b = get(want, i);
      const bool both_nan = a != a && b != b;
      if (std::memcmp(got + i * size, want + i * size, size) != 0 && !both_nan) found = static_cast<std::ptrdiff_t>(i);
    }
  });
  return found;
}

// Random bits for integers; for floats mostly numbers of like size, whose sums and products round, among zeros,
// infinities, subnormals and random bits.
inline Bytes random_elements(DType type, std::size_t elements, std::mt19937_64& random) {
  Bytes out(elements * size_of(type));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(random());
  if (!is_float(type)) return out;
  with_type(type, [&]<class T>(auto, auto put, T) {
    const T specials[] = {T(0),
                          -T(0),
                          std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::denorm_min(),
                          std::numeric_limits<T>::min() / 2,
                          std::numeric_limits<T>::quiet_NaN()};
    for (std::size_t i = 0; i < elements; ++i) {
      const auto dice = random() % 64;
      if (dice < 6) put(out.data(), i, specials[dice] * (random() % 2 ? T(1) : T(-1)));
      if (dice > 8)
        put(out.data(), i, std::ldexp(T(random() >> 12), -52 + int(random() % 5)) * (random() % 2 ? 1 : -1));
    }
  });
  return out;
}

}  // namespace trireme::reduce_test

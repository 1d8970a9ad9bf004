// Element types and reduction operators: the closed sets that every collective accepts.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trireme {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, i64 };
enum class Op : std::uint8_t { sum, avg, min, max, prod, band, bor, bxor };

inline constexpr std::array kDTypes{DType::f32, DType::f64, DType::f16, DType::bf16,
                                    DType::i8,  DType::u8,  DType::i32, DType::i64};
inline constexpr std::array kOps{Op::sum, Op::avg, Op::min, Op::max, Op::prod, Op::band, Op::bor, Op::bxor};

constexpr std::size_t size_of(DType type) {
  constexpr std::size_t sizes[] = {4, 8, 2, 2, 1, 1, 4, 8};
  return sizes[static_cast<int>(type)];
}
constexpr bool is_float(DType type) { return type <= DType::bf16; }
constexpr bool is_bitwise(Op op) { return op >= Op::band; }

// Bitwise operators have no meaning on floating point.
constexpr bool defined(DType type, Op op) { return !(is_float(type) && is_bitwise(op)); }

std::string_view name(DType type);
std::string_view name(Op op);

// Both throw ConfigError, listing the valid names.
DType parse_dtype(std::string_view text);
Op parse_op(std::string_view text);

}  // namespace trireme

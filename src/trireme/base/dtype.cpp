#include "trireme/base/dtype.h"

#include <string>

#include "trireme/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kDTypeNames[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"};
constexpr std::string_view kOpNames[] = {"sum", "avg", "min", "max", "prod", "band", "bor", "bxor"};

template <typename Enum, std::size_t N>
Enum parse(std::string_view text, const std::string_view (&names)[N], const char* what) {
  std::string valid;
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
    valid += (i ? ", " : "") + std::string(names[i]);
  }
  throw ConfigError("unknown " + std::string(what) + " '" + std::string(text) + "'; one of: " + valid);
}

}  // namespace

std::string_view name(DType type) { return kDTypeNames[static_cast<int>(type)]; }
std::string_view name(Op op) { return kOpNames[static_cast<int>(op)]; }
DType parse_dtype(std::string_view text) { return parse<DType>(text, kDTypeNames, "element type"); }
Op parse_op(std::string_view text) { return parse<Op>(text, kOpNames, "operator"); }

}  // namespace trireme

#include "trireme/base/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

constexpr std::string_view kDTypeNames[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"};
constexpr std::string_view kOpNames[] = {"sum", "avg", "min", "max", "prod", "band", "bor", "bxor"};

template <typename Enum, std::size_t N>
Enum parse(std::string_view text, const std::string_view (&names)[N], const char* what) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  throw ConfigError(fmt::format("unknown {} '{}'; {}one of: {}", what, clipped(text), did_you_mean(text, names),
                                fmt::join(names, ", ")));
}

}  // namespace

std::string_view name(DType type) { return kDTypeNames[static_cast<int>(type)]; }
std::string_view name(Op op) { return kOpNames[static_cast<int>(op)]; }
DType parse_dtype(std::string_view text) { return parse<DType>(text, kDTypeNames, "element type"); }
Op parse_op(std::string_view text) { return parse<Op>(text, kOpNames, "operator"); }

}  // namespace trireme

#include "trireme/base/text/bytes_text.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace trireme {

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

}  // namespace trireme

#include "trireme/ps/clock.h"

#include <fmt/format.h>

#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"

namespace trireme::ps {

Consistency parse_consistency(std::string_view text) {
  if (text == "bsp") return Consistency::bsp();
  if (text == "async") return Consistency::asynchronous();
  if (text.starts_with("ssp:")) {
    return Consistency::ssp(static_cast<std::uint64_t>(parse_integer(text.substr(4), "ssp: staleness", 0, 1'000'000)));
  }
  constexpr std::array<std::string_view, 3> kNames{"bsp", "ssp", "async"};
  throw ConfigError(fmt::format("no consistency model is called {}; {}there are bsp, ssp:STALENESS, async",
                                clipped(text), did_you_mean(text.substr(0, text.find(':')), kNames)));
}

std::string to_string(const Consistency& consistency) {
  if (consistency.async) return "async";
  return consistency.s == 0 ? "bsp" : fmt::format("ssp:{}", consistency.s);
}

}  // namespace trireme::ps

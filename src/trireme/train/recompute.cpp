#include "trireme/train/recompute.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/base/size.h"

namespace trireme::train {

std::size_t recompute_of(const std::string& text) {
  if (text == "none" || text == "auto") return 0;
  if (text.starts_with("every:")) {
    return static_cast<std::size_t>(parse_integer(text.substr(6), "--recompute every", 1, 1 << 20));
  }
  throw ConfigError(fmt::format("--recompute: '{}' is not one of: none, every:N, auto", text));
}

}  // namespace trireme::train

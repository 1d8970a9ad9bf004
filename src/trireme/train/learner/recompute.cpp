#include "trireme/train/learner/recompute.h"

#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"

namespace trireme::train {

std::size_t recompute_of(const std::string& text) {
  if (text == "none" || text == "auto") return 0;
  if (text.starts_with("every:")) {
    return static_cast<std::size_t>(parse_integer(text.substr(6), "--recompute every", 1, 1 << 20));
  }
  constexpr std::array<std::string_view, 3> kChoices{"none", "every:N", "auto"};
  not_one_of("--recompute", text, kChoices);
}

}  // namespace trireme::train

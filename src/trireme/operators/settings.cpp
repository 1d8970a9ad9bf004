#include "trireme/operators/settings.h"

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::operators {

Settings settings_of(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"auto", "libtorch", "reference"};
  const auto colon = text.find(':');
  const auto at = std::ranges::find(kNames, text.substr(0, colon));
  if (at == kNames.end()) not_one_of("--ops", std::string(text), kNames);
  Settings settings{.operators = static_cast<Operators>(at - kNames.begin())};
  if (colon == text.npos) return settings;
  if (settings.operators == Operators::libtorch) {
    throw ConfigError("--ops: libtorch chooses its instructions itself; ATEN_CPU_CAPABILITY limits them");
  }
  settings.instructions = text.substr(colon + 1);
  const auto sets = ops::instruction_sets();
  if (std::ranges::find(sets, settings.instructions) == sets.end()) {
    not_one_of("--ops: instructions of this CPU", settings.instructions, views_of(sets));
  }
  return settings;
}

}  // namespace trireme::operators

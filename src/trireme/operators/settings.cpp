#include "trireme/operators/settings.h"

#include <array>

#include "trireme/base/text/nearest.h"

namespace trireme::operators {

Operators operators_of(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames{"auto", "libtorch", "reference"};
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    if (kNames[k] == name) return static_cast<Operators>(k);
  }
  not_one_of("--ops", std::string(name), kNames);
}

}  // namespace trireme::operators

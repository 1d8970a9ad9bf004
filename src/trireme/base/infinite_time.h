// The time of what does not happen, in seconds. Private to the folder.
#pragma once
#include <limits>

namespace trireme {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace trireme

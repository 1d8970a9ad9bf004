// What --recompute says.
#pragma once
#include <cstddef>
#include <string>

namespace trireme::train {

// 0 for none and for auto, 2 for every:2. Throws ConfigError.
std::size_t recompute_of(const std::string& text);

}  // namespace trireme::train

// Amounts of memory for people.
#pragma once
#include <cstdint>
#include <string>

namespace trireme {

// 3328599654 → "3.1 GiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace trireme

#include "trireme/base/available_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace trireme {

std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kilobytes = 0;
    if (words >> key >> kilobytes && key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace trireme

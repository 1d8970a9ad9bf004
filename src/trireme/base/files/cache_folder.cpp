#include "trireme/base/files/cache_folder.h"

#include <cstdlib>

namespace trireme {

std::filesystem::path cache_folder() {
  if (const char* set = std::getenv("TRIREME_CACHE"); set != nullptr && *set != 0) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set != nullptr && *set != 0) {
    return std::filesystem::path(set) / "trireme";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr && *home != 0 ? home : "/tmp") / ".cache" / "trireme";
}

}  // namespace trireme

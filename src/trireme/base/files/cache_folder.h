// Where measurements of this machine are kept: TRIREME_CACHE, or trireme under XDG_CACHE_HOME or ~/.cache.
#pragma once
#include <filesystem>

namespace trireme {

std::filesystem::path cache_folder();

}  // namespace trireme

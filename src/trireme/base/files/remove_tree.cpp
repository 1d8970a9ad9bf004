#include "trireme/base/files/remove_tree.h"

#include <ftw.h>

#include <cstdio>

namespace trireme {

void remove_tree(const std::filesystem::path& path) noexcept {
  constexpr int kOpenFolders = 16;
  auto remove_one = [](const char* name, const struct stat*, int, FTW*) {
    std::remove(name);
    return 0;
  };
  nftw(path.c_str(), remove_one, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

}  // namespace trireme

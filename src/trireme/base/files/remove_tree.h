// Removes a folder with all that is in it. Not std::filesystem's: LibTorch 2.x of pip exports one of its own, which
// programs that link it get instead of the standard library's, and which crashes.
#pragma once
#include <filesystem>

namespace trireme {

// What cannot be removed stays. A path that is not there is fine; links are removed, not followed.
void remove_tree(const std::filesystem::path& path) noexcept;

}  // namespace trireme

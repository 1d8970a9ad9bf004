// Files within a file: members of a ZIP, and whole trees in a compressed tar. Nothing declared is believed: no more
// memory or disk is taken than the archive can fill.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

// Those members of a ZIP that are wanted, their sums checked. Throws DataError naming the file.
std::map<std::string, std::vector<std::uint8_t>> read_zip(const std::filesystem::path& path,
                                                          std::span<const std::string_view> wanted);

// Unpacks the plain files of a .tar.gz below a folder, which must exist; their owners and permissions are not taken.
// Throws DataError for whatever else is in it, names that lead out of the folder, or more than `most` bytes in all.
void unpack_tar(const std::filesystem::path& path, const std::filesystem::path& folder, std::uint64_t most);

}  // namespace trireme::data

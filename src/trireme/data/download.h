// One file from a server, by libcurl.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trireme::data {

struct DownloadOptions {
  std::uint64_t most_bytes = 0;
  double longest_s = 3600;  // in all
  double stalled_s = 60;    // of less than 1 KB/s, after which it is tried again
  int tries = 4;            // each goes on where the one before ended, if the server can
  double pause_s = 1;       // before the second try; twice as long before each further one
  std::string proxy;        // empty: as the environment says
  std::string token;        // sent as "Authorization: Bearer", to this server only
  std::string ca_file;      // empty: the system's
};

// `progress` is told some times a second what has come of how much; 0: not known. Throws DataError, one line with the
// address and the reason. What has come of a failed download stays in the file.
void download(const std::string& address, const std::filesystem::path& to, const DownloadOptions& options,
              const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

}  // namespace trireme::data

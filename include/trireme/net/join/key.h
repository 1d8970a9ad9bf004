// The job key: 32 random bytes that every rank of a job holds and nobody else. It comes by environment or from a file
// of mode 0600, never on a command line, and is never printed.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::net {

struct Key {
  std::array<std::uint8_t, 32> bytes{};
  // Made for one job, not the user's standing key: needed to leave loopback.
  bool of_job = false;
};

// Fresh, from the kernel's generator.
Key generate_key();
std::string to_hex(const Key& key);
// From 64 hex digits. Throws ConfigError that names `what`, not the text.
Key parse_key(std::string_view hex, std::string_view what);

// TRIREME_KEY (hex), else the file TRIREME_KEY_FILE, else the user's standing key for jobs on loopback, made when
// missing. Launchers set the first. Throws ConfigError where it is none, or a file that others may read.
Key key_from_environment();

}  // namespace trireme::net

// The job key: 32 random bytes that every rank of a job holds and nobody else. It comes by environment or from a file
// of mode 0600, never on a command line, and is never printed.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "trireme/net/join/environment.h"

namespace trireme::net {

struct Key {
  std::array<std::uint8_t, 32> bytes{};
  // Made for one job, not the user's standing key: needed to leave loopback.
  bool of_job = false;
};

// Fresh, from the kernel's generator.
Key generate_key();
std::string to_hex(const Key& key);
// 64 hex digits; ConfigError names `what`, not the text.
Key parse_key(std::string_view hex, std::string_view what);

// The file must be a plain file of mode 0600 (or 0400) that belongs to us: ConfigError otherwise.
Key load_key_file(const std::filesystem::path& path);
// Creates the file with mode 0600, whole or not at all. False if there is one already.
bool store_key_file(const std::filesystem::path& path, const Key& key);

// The user's standing key for jobs on loopback: $XDG_STATE_HOME/trireme/key or ~/.local/state/trireme/key, made when
// missing.
Key user_key(const Environment& environment);

// TRIREME_KEY (hex), else TRIREME_KEY_FILE, else the user's standing key.
Key key_from_environment(const Environment& environment);

}  // namespace trireme::net

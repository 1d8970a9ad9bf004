// Where a job's key may come from.
#pragma once
#include <filesystem>

#include "trireme/net/join/environment.h"
#include "trireme/net/join/key.h"

namespace trireme::net {

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

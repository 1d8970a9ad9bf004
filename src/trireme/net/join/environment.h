// The environment as a value, so that reading it can be tested.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "trireme/net/world.h"

namespace trireme::net {

// Looks a variable up. An empty value counts as unset.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

WorldSpec world_from_environment(const Environment& environment);
ConnectOptions connect_options_from_environment(const Environment& environment);

}  // namespace trireme::net

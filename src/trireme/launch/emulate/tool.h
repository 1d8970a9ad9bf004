// The programs of iproute2 that set up devices and queues.
#pragma once
#include <string>
#include <vector>

#include "trireme/net/fd.h"

namespace trireme::launch {

// Runs `name` ("ip" or "tc") over the commands, inside a namespace. Throws ConfigError when the program is missing or
// a command fails, naming what this kernel lacks where that is why.
void run_tool(const std::string& name, const net::Fd& network_namespace, const std::vector<std::string>& commands);

}  // namespace trireme::launch

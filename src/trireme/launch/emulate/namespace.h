// Network namespaces without a name. One lives as long as a descriptor, a process or a socket of it does, so whoever
// held it, however it ended, leaves nothing to clean up.
#pragma once
#include <functional>

#include "trireme/net/fd.h"

namespace trireme::launch {

// A new one, with nothing but a loopback that is down. This process stays where it is. Throws ConfigError where the
// user or the kernel may not.
net::Fd new_network_namespace();

// Runs `act` on a thread of its own inside the namespace, to its end; what it throws is thrown here.
void run_inside(const net::Fd& network_namespace, const std::function<void()>& act);

}  // namespace trireme::launch

// Hosts emulated on this machine: a network namespace each, joined by one switch.
//
//   host 0: eth0 ══ port0 ┐
//   host 1: eth0 ══ port1 ┼ bridge, in a namespace of its own
//   host 2: eth0 ══ port2 ┘
//
// A link ══ is a veth pair, and what leaves either end of it passes a token bucket, so that it has its bandwidth in
// both directions at once, as an Ethernet cable has. Latency is added where a packet leaves its host. Nothing of this
// is seen on the machine's own network, and all of it goes when this object and the workers do.
#pragma once
#include <sched.h>

#include <string>
#include <vector>

#include "trireme/net/emulated_network.h"
#include "trireme/net/fd.h"

namespace trireme::launch {

class EmulatedHosts {
 public:
  // Needs root, iproute2 and, in the kernel, veth, bridge, tbf and for latency netem. Throws ConfigError that names
  // what is missing. Forks: call it where no other thread runs.
  explicit EmulatedHosts(const net::EmulatedNetwork& network);

  const net::Fd& network_namespace(int host) const { return hosts_[static_cast<std::size_t>(host)]; }
  // Those of this process's that are the host's own; where there are fewer than hosts, one that it shares.
  cpu_set_t cores(int host) const;

 private:
  net::Fd switch_;
  std::vector<net::Fd> hosts_;
};

// Where the others reach a host, within the emulated network alone.
std::string emulated_address(int host);

// The commands for `ip` inside a host, and for `tc` that shape what leaves `device`. Of use to tests.
std::vector<std::string> host_commands(int host, const net::EmulatedNetwork& network);
std::vector<std::string> shaping_commands(const std::string& device, const net::EmulatedNetwork& network,
                                          bool leaves_host);

}  // namespace trireme::launch

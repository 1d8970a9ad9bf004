#include "trireme/launch/emulate/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "trireme/base/cores.h"
#include "trireme/launch/emulate/namespace.h"
#include "trireme/launch/emulate/tool.h"

namespace trireme::launch {
namespace {

// A message that fits into a bucket passes at once, as on no real link; but the smaller it is, the more often the
// kernel's timers take a core from those who compute. Half of it is handed over at once (host_commands).
constexpr double kBucketSeconds = 0.5e-3;
constexpr std::uint64_t kLeastBucket = 3200;  // bytes, two frames
// What a port holds back before it drops.
constexpr double kQueueSeconds = 20e-3;
constexpr std::uint64_t kLeastQueue = 256 << 10;  // bytes
constexpr const char* kNetwork = "10.77.0.0";
constexpr int kFrame = 1514;  // bytes on the wire, of 1,500 and the header

std::uint64_t bytes_in(double seconds, const net::EmulatedNetwork& network) {
  return static_cast<std::uint64_t>(static_cast<double>(network.bits_per_s) / 8 * seconds);
}

std::uint64_t bucket_of(const net::EmulatedNetwork& network) {
  return std::max(kLeastBucket, bytes_in(kBucketSeconds, network));
}

// Whatever the machine uses, emulated hosts behave alike. BBR, where that is what it is, takes a worker that stood
// still for a slow link, and goes on at half the rate for as long as it then sends no more than that.
std::string congestion_control() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  for (std::string name; file >> name;) {
    if (name == "cubic") return name;
  }
  return "reno";  // which every kernel has
}

std::vector<std::string> switch_commands(const std::vector<net::Fd>& hosts) {
  std::vector<std::string> commands{"link add name bridge mtu 1500 type bridge mcast_snooping 0",
                                    "link set dev bridge addrgenmode none up"};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    commands.push_back(fmt::format("link add name port{} type veth peer name eth0 netns /proc/{}/fd/{}", i, ::getpid(),
                                   hosts[i].get()));
    commands.push_back(fmt::format("link set dev port{} master bridge addrgenmode none up", i));
  }
  return commands;
}

}  // namespace

std::string emulated_address(int host) { return fmt::format("10.77.0.{}", host + 1); }

// TCP hands over many frames as one. Those that do not fit into a bucket would be taken apart and overtake each other;
// two fit, so that one is on its way while the next one's tokens gather.
std::vector<std::string> host_commands(int host, const net::EmulatedNetwork& network) {
  constexpr std::uint64_t kLeast = 2 * kFrame, kMost = 65536;
  const auto at_once =
      network.bits_per_s > 0 ? std::clamp<std::uint64_t>(bucket_of(network) / 2, kLeast, kMost) : kMost;
  return {"link set dev lo up", fmt::format("address add {}/16 dev eth0", emulated_address(host)),
          fmt::format("link set dev eth0 addrgenmode none gso_max_size {} up", at_once),
          fmt::format("route replace {}/16 dev eth0 proto kernel scope link src {} congctl {}", kNetwork,
                      emulated_address(host), congestion_control())};
}

std::vector<std::string> shaping_commands(const std::string& device, const net::EmulatedNetwork& network,
                                          bool leaves_host) {
  std::vector<std::string> commands;
  if (network.bits_per_s > 0) {
    commands.push_back(fmt::format("qdisc add dev {} root handle 1: tbf rate {}bit burst {} limit {}", device,
                                   network.bits_per_s, bucket_of(network),
                                   std::max(kLeastQueue, bytes_in(kQueueSeconds, network))));
  }
  if (network.latency_s > 0 && leaves_host) {
    // It holds the packets on their way too.
    auto packets = (kLeastQueue + bytes_in(kQueueSeconds + network.latency_s, network)) / kFrame + 1000;
    commands.push_back(fmt::format("qdisc add dev {} {} handle 2: netem delay {}us limit {}", device,
                                   network.bits_per_s > 0 ? "parent 1:1" : "root",
                                   std::llround(network.latency_s * 1e6), packets));
  }
  return commands;
}

cpu_set_t EmulatedHosts::cores(int host) const {
  return share_of_cores(own_cores(), host, static_cast<int>(hosts_.size()));
}

EmulatedHosts::EmulatedHosts(const net::EmulatedNetwork& network) : switch_(new_network_namespace()) {
  for (int i = 0; i < network.hosts; ++i) hosts_.push_back(new_network_namespace());
  run_tool("ip", switch_, switch_commands(hosts_));
  std::vector<std::string> shaping;
  for (int i = 0; i < network.hosts; ++i) {
    run_tool("ip", network_namespace(i), host_commands(i, network));
    if (auto commands = shaping_commands("eth0", network, true); !commands.empty()) {
      run_tool("tc", network_namespace(i), commands);
    }
    auto port = shaping_commands(fmt::format("port{}", i), network, false);
    shaping.insert(shaping.end(), port.begin(), port.end());
  }
  if (!shaping.empty()) run_tool("tc", switch_, shaping);
}

}  // namespace trireme::launch

// The network of emulated hosts that a job asks for, as written on the command line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::net {

struct EmulatedNetwork {
  int hosts = 0;                 // 0: none, the workers use this machine's own network
  std::uint64_t bits_per_s = 0;  // of each host's link, each way; 0: as fast as this machine can
  double latency_s = 0;          // one way, from host to host

  bool operator==(const EmulatedNetwork&) const = default;
};

inline constexpr int kMostEmulatedHosts = 250;

// What stands for "not asked for" in the flags.
inline constexpr std::string_view kNoHosts = "none", kNoLimit = "unlimited", kNoLatency = "0";

// From --hosts (ns:4), --bandwidth (100mbit, 12.5MB) and --latency (0.5ms, 200us). Throws ConfigError that says what
// may be written.
EmulatedNetwork parse_emulated_network(std::string_view hosts, std::string_view bandwidth, std::string_view latency);

// Of so many workers that a launcher started how many are on the host of one of them, which runs here.
int workers_beside(int started);

// That so many workers over this transport can be spread over its hosts. Throws ConfigError.
void check_emulated_network(const EmulatedNetwork& network, std::int64_t workers, std::string_view transport);

// As the flags would have it: "ns:4", "100mbit", "0.5ms".
std::string hosts_text(const EmulatedNetwork& network);
std::string bandwidth_text(const EmulatedNetwork& network);
std::string latency_text(const EmulatedNetwork& network);
// "4 emulated hosts, 100mbit, 0.5ms"
std::string describe(const EmulatedNetwork& network);

}  // namespace trireme::net

#include "trireme/net/emulated_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"

namespace trireme::net {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
// Largest first; a name that ends in another stands before it.
constexpr auto kBits = std::to_array<Unit>({{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}});
constexpr auto kBytes = std::to_array<Unit>({{"GB", 8e9}, {"MB", 8e6}, {"KB", 8e3}});
constexpr auto kTimes = std::to_array<Unit>({{"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}});

constexpr double kLeastRate = 64e3, kMostRate = 400e9, kLeastLatency = 1e-6, kMostLatency = 10;

// "12.5MB" with units that have MB; none unless it is a plain decimal number and a unit.
template <std::size_t kCount>
std::optional<double> with_unit(std::string_view text, const std::array<Unit, kCount>& units) {
  for (const auto& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    auto digits = text.substr(0, text.size() - unit.name.size());
    double value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
    bool read = error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value);
    return read ? std::optional(value * unit.factor) : std::nullopt;
  }
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

int parse_hosts(std::string_view text) {
  constexpr std::string_view kNamespaces = "ns:";
  if (!text.starts_with(kNamespaces)) {
    throw ConfigError(
        fmt::format("--hosts: '{}' is not ns:N, which emulates N hosts on this machine (1 to {}), or {}; for real "
                    "hosts see --nnodes",
                    text, kMostEmulatedHosts, kNoHosts));
  }
  return static_cast<int>(parse_integer(text.substr(kNamespaces.size()), "--hosts ns:N", 1, kMostEmulatedHosts));
}

std::uint64_t parse_rate(std::string_view text) {
  auto plain = text.ends_with("/s") ? text.substr(0, text.size() - 2) : text;
  auto bits = with_unit(plain, kBytes);
  if (!bits) bits = with_unit(lower(plain), kBits);
  if (!bits || !(*bits >= kLeastRate && *bits <= kMostRate)) {
    throw ConfigError(
        fmt::format("--bandwidth: '{}' is not a rate from 64kbit to 400gbit; write 10mbit, 100mbit, 1gbit, or "
                    "12.5MB for bytes a second (KB, MB, GB), or {}",
                    text, kNoLimit));
  }
  return static_cast<std::uint64_t>(std::llround(*bits));
}

double parse_latency(std::string_view text) {
  if (text == kNoLatency) return 0;
  auto seconds = with_unit(text, kTimes);
  if (!seconds || !(*seconds == 0 || (*seconds >= kLeastLatency && *seconds <= kMostLatency))) {
    throw ConfigError(fmt::format("--latency: '{}' is not a time from 1us to 10s; write 200us, 0.5ms or 1s, or {}",
                                  text, kNoLatency));
  }
  return *seconds;
}

}  // namespace

EmulatedNetwork parse_emulated_network(std::string_view hosts, std::string_view bandwidth, std::string_view latency) {
  EmulatedNetwork network;
  if (bandwidth != kNoLimit) network.bits_per_s = parse_rate(bandwidth);
  network.latency_s = parse_latency(latency);
  if (hosts != kNoHosts) {
    network.hosts = parse_hosts(hosts);
  } else if (bandwidth != kNoLimit || network.latency_s > 0) {
    throw ConfigError(fmt::format("{} shapes the links of emulated hosts: give --hosts ns:N too",
                                  bandwidth != kNoLimit ? "--bandwidth" : "--latency"));
  }
  return network;
}

int workers_beside(int started) {
  const char* hosts = std::getenv("TRIREME_HOSTS");
  const int emulated = hosts ? parse_emulated_network(hosts, kNoLimit, kNoLatency).hosts : 0;
  return emulated > 0 ? std::max(1, started / emulated) : started;
}

void check_emulated_network(const EmulatedNetwork& network, std::int64_t workers, std::string_view transport) {
  if (network.hosts == 0) return;
  if (workers % network.hosts != 0) {
    throw ConfigError(fmt::format("--hosts ns:{}: {} workers cannot be spread evenly over {} hosts; give a multiple",
                                  network.hosts, workers, network.hosts));
  }
  if (transport != "auto" && transport != "tcp") {
    throw ConfigError(
        fmt::format("--hosts ns:{}: memory does not cross hosts, so transport {} cannot be; leave out --transport, "
                    "or give tcp",
                    network.hosts, transport));
  }
}

std::string hosts_text(const EmulatedNetwork& network) {
  return network.hosts == 0 ? std::string(kNoHosts) : fmt::format("ns:{}", network.hosts);
}

std::string bandwidth_text(const EmulatedNetwork& network) {
  for (const auto& unit : kBits) {
    double value = static_cast<double>(network.bits_per_s) / unit.factor;
    if (value >= 1) return fmt::format("{}{}", value, unit.name);
  }
  return std::string(kNoLimit);
}

std::string latency_text(const EmulatedNetwork& network) {
  if (network.latency_s <= 0) return std::string(kNoLatency);
  double us = std::round(network.latency_s * 1e6);
  return us < 100 ? fmt::format("{}us", us) : fmt::format("{}ms", us / 1e3);
}

std::string describe(const EmulatedNetwork& network) {
  std::string text = fmt::format("{} emulated host{}", network.hosts, network.hosts == 1 ? "" : "s");
  if (network.bits_per_s > 0) text += ", " + bandwidth_text(network);
  if (network.latency_s > 0) text += ", " + latency_text(network);
  return text;
}

}  // namespace trireme::net

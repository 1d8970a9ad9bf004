#include "trireme/net/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"
#include "trireme/net/memory/inproc.h"
#include "trireme/net/memory/shm.h"
#include "trireme/net/tcp/tcp.h"

namespace trireme::net {
namespace {

// Picks the function to connect where a transport has several.
using Connect = std::unique_ptr<Transport> (*)(const WorldSpec&, const ConnectOptions&);

std::unique_ptr<Transport> connect_inproc(const WorldSpec& spec, const ConnectOptions&) {
  if (spec.size == 1) return std::move(inproc_world(1).front());
  throw ConfigError(fmt::format("inproc joins threads of one process, but rank {} of {} is a process: use shm or tcp",
                                spec.rank, spec.size));
}

// The family of transports: one line each.
constexpr auto kTransports = std::to_array<TransportKind>({
    {"inproc", "ranks are threads of one process", connect_inproc},
    {"shm", "ranks are processes of one host, over shared memory", connect_shm},
    {"tcp", "ranks on any hosts, over TCP with IPv4 or IPv6", static_cast<Connect>(connect_tcp)},
});

const TransportKind* find(std::string_view name) {
  auto found =
      std::find_if(kTransports.begin(), kTransports.end(), [&](const auto& kind) { return kind.name == name; });
  return found == kTransports.end() ? nullptr : &*found;
}

const TransportKind& choose(const WorldSpec& spec, const std::string& wanted) {
  if (wanted != "auto") {
    if (const auto* kind = find(wanted)) return *kind;
    std::vector<std::string_view> names{"auto"};
    for (const auto& kind : kTransports) names.push_back(kind.name);
    throw ConfigError(fmt::format("there is no transport '{}'; {}one of: {}", clipped(wanted),
                                  did_you_mean(wanted, names), fmt::join(names, ", ")));
  }
  return *find(spec.size == 1 ? "inproc" : spec.local_size == spec.size ? "shm" : "tcp");
}

}  // namespace

std::span<const TransportKind> transports() { return kTransports; }

std::unique_ptr<Transport> connect(const WorldSpec& spec, const ConnectOptions& options) {
  return choose(spec, options.transport).connect(spec, options);
}

}  // namespace trireme::net

// The libraries Trireme is measured against, built on first use from their Debian packages.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/collective/schedule.h"

namespace trireme::bench {

// A member of the family of peers: a line in the list in peers.cpp.
struct Peer {
  std::string_view name;
  std::string_view packages;  // what apt-get install needs
  std::string_view source;    // in bench/peers/
  std::string_view compiler;
  std::string_view needs;  // a file or program that only comes with the packages
  std::string_view links;
  bool bitwise;         // has bitwise operators
  bool reduce_scatter;  // has that collective
  // What starts `ranks` ranks of `program` that connect to `socket`; `folder` is empty and theirs.
  std::vector<Argv> (*commands)(const std::string& program, int ranks, const std::string& socket,
                                const std::string& folder);
};

std::span<const Peer> peers();
// "openmpi,gloo"; throws ConfigError listing the peers there are.
std::vector<const Peer*> parse_peers(std::string_view text);

// Throws ConfigError when the peer has no such call.
void require_able(const Peer& peer, Collective what, DType dtype, Op op);

// Path of the peer's program, compiled now unless it is in the cache folder. Throws ConfigError that names the packages
// when the peer is not installed.
std::string build_peer(const Peer& peer);

}  // namespace trireme::bench

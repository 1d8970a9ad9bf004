// The connecting side: reaches a rank and proves the job key to it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/socket.h"

namespace trireme::net {

// Where a rank may be found now.
struct Place {
  std::vector<Address> addresses;
  Session session;
};

struct DialOptions {
  // Addresses change while we try (a file that may be stale): a refusal is then no reason to give up.
  bool may_be_stale = false;
  // Called between attempts; may throw.
  std::function<void()> check = [] {};
};

// Tries until the deadline; `place` is asked before each attempt (nothing: not known yet). Throws ProtocolError when
// refused, Timeout with the last failure.
Fd connect_to(const std::function<std::optional<Place>()>& place, const Link& link, Deadline deadline,
              const DialOptions& options = {});

// Never without a key of the job to an address that is not this host's loopback: throws ConfigError.
void require_key_beyond_loopback(const Address& address, const Key& key);

}  // namespace trireme::net

// Descriptors, addresses and the few socket calls used here. Every descriptor is close-on-exec, every write
// MSG_NOSIGNAL.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/net/fd.h"

namespace trireme::net {

// Random bytes from the kernel.
void fill_random(std::span<std::uint8_t> bytes);

// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool is_loopback() const;
  bool is_wildcard() const;
  int family() const { return storage.ss_family; }
  int port() const;
  void set_port(int port);
};
std::string to_string(const Address& address);  // "127.0.0.1:4000", "[::1]:4000"

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port", "1.2.3.4:port", "[::1]:port". Throws ConfigError naming `what`.
HostPort parse_host_port(std::string_view text, std::string_view what);

// Every address of a host, in the resolver's order. Throws ConfigError for a name that is not known.
std::vector<Address> resolve(const std::string& host, int port);

Address local_address(int fd);
std::optional<Address> peer_address(int fd);

// Listens at `address` (port 0: any), non-blocking. Throws ConfigError when it cannot.
Fd listen_at(const Address& address);
// Takes over a listening TCP socket inherited from a launcher. Throws ConfigError when it is not one.
Fd adopt_listener(int fd);

// A non-blocking connection, or none with errno set. Throws nothing: callers retry.
Fd connect_to(const Address& address, Deadline deadline);

// NODELAY, and death of the other host noticed by the kernel within some 20 s.
void tune(int fd);

// Waits for `events` on one descriptor; false when the deadline passed.
bool wait_for(int fd, short events, Deadline deadline);

}  // namespace trireme::net

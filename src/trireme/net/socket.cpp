#include "trireme/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"

namespace trireme::net {
namespace {

constexpr int kBacklog = 4096;

const in6_addr& v6(const Address& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr; }
std::uint32_t v4(const Address& address) {
  return ntohl(reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr);
}

// ::ffff:1.2.3.4, as a dual-stack listener sees IPv4 peers, is 1.2.3.4.
Address plain(const Address& address) {
  if (address.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(address))) return address;
  Address result;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port;
  std::memcpy(&in.sin_addr, v6(address).s6_addr + 12, 4);
  std::memcpy(&result.storage, &in, sizeof in);
  result.length = sizeof in;
  return result;
}

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

}  // namespace

void fill_random(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw Error(fmt::format("the kernel gives no random bytes: {}", std::strerror(errno)));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

bool Address::is_loopback() const {
  if (family() == AF_INET) return v4(*this) >> 24 == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(*this));
}

bool Address::is_wildcard() const {
  if (family() == AF_INET) return v4(*this) == INADDR_ANY;
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6(*this));
}

// sin_port and sin6_port lie at the same place.
int Address::port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port); }
void Address::set_port(int port) {
  reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(static_cast<std::uint16_t>(port));
}

std::string to_string(const Address& address) {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  if (address.family() == AF_INET6) return fmt::format("[{}]:{}", host, address.port());
  return fmt::format("{}:{}", host, address.port());
}

HostPort parse_host_port(std::string_view text, std::string_view what) {
  auto fail = [&] {
    throw ConfigError(fmt::format("{}: '{}' is not an address; write host:port or [::1]:port", what, text));
  };
  HostPort result;
  auto colon = text.rfind(':');
  if (colon == std::string_view::npos) fail();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    fail();
  }
  if (host.empty() || host.size() > 253) fail();
  for (char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || c > '~') fail();
  }
  result.host = host;
  result.port = static_cast<int>(parse_integer(text.substr(colon + 1), fmt::format("{}: port", what), 1, 65535));
  return result;
}

std::vector<Address> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    throw ConfigError(fmt::format("cannot find the address of host '{}': {}", host, ::gai_strerror(error)));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    address.set_port(port);
    addresses.push_back(address);
  }
  if (addresses.empty()) throw ConfigError(fmt::format("host '{}' has no IPv4 or IPv6 address", host));
  return addresses;
}

Address local_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    throw Error(fmt::format("getsockname: {}", std::strerror(errno)));
  }
  return plain(address);
}

std::optional<Address> peer_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return std::nullopt;
  return plain(address);
}

Fd listen_at(const Address& address) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) {
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    // The wildcard of IPv6 serves IPv4 as well.
    if (address.family() == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, address.is_wildcard() ? 0 : 1);
  }
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    throw ConfigError(fmt::format("cannot listen at {}: {}", to_string(address), std::strerror(errno)));
  }
  return fd;
}

Fd adopt_listener(int fd) {
  int listening = 0;
  socklen_t length = sizeof listening;
  Address address;
  address.length = sizeof address.storage;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || !listening ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0 ||
      (address.family() != AF_INET && address.family() != AF_INET6)) {
    throw ConfigError(fmt::format("TRIREME_RDZV_FD: descriptor {} is not a listening TCP socket", fd));
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return Fd(fd);
}

Fd connect_to(const Address& address, Deadline deadline) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return Fd();
    if (!wait_for(fd.get(), POLLOUT, deadline)) {
      errno = ETIMEDOUT;
      return Fd();
    }
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      errno = error;
      return Fd();
    }
  }
  // A port of the ephemeral range may connect to itself when nobody listens there.
  auto peer = peer_address(fd.get());
  if (!peer || to_string(*peer) == to_string(local_address(fd.get()))) {
    errno = ECONNREFUSED;
    return Fd();
  }
  tune(fd.get());
  return fd;
}

void tune(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
}

bool wait_for(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    int ready = ::poll(&entry, 1, deadline.left_ms());
    if (ready > 0) return true;
    if (deadline.passed()) return false;
  }
}

}  // namespace trireme::net

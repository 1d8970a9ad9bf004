#include "trireme/ps/wire/endpoint.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/net/join/connector.h"
#include "trireme/net/socket.h"

namespace trireme::ps {
namespace {

std::string random_hex() {
  std::array<std::uint8_t, 8> bytes;
  net::fill_random(bytes);
  std::string text;
  for (auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

struct UnixAddress {
  explicit UnixAddress(std::string_view endpoint) {
    // "@name" is "\0name": the abstract namespace.
    if (endpoint.size() < 2 || endpoint.size() > sizeof address.sun_path) {
      throw ConfigError(fmt::format("'{}' is no name of a Unix socket: 1 to 107 characters after the @", endpoint));
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, endpoint.data() + 1, endpoint.size() - 1);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + endpoint.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t length;
};

net::Fd unix_socket() {
  net::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw Error(fmt::format("cannot make a Unix socket: {}", std::strerror(errno)));
  return fd;
}

// All connections of a parameter server are between "rank 1", who calls, and "rank 0".
constexpr net::Link kCall{net::Purpose::channel, 1, 0, 2, 0};

net::Fd connect_unix(const std::string& endpoint, std::string_view who, Deadline deadline) {
  UnixAddress address(endpoint);
  while (true) {
    net::Fd fd = unix_socket();
    if (::connect(fd.get(), address.get(), address.length) == 0) {
      if (!same_user(fd)) throw ProtocolError(fmt::format("{} at {} belongs to another user", who, endpoint));
      return fd;
    }
    if (deadline.passed()) {
      throw Timeout(-1, fmt::format("{} does not answer at {} within {:g} s: {}", who, endpoint,
                                    deadline.span_seconds(), std::strerror(errno)));
    }
    std::this_thread::sleep_for(std::min<Duration>(std::chrono::milliseconds(2), deadline.left()));
  }
}

}  // namespace

std::string fresh_name(std::string_view what) { return fmt::format("@trireme-{}-{}", what, random_hex()); }

void check_endpoint(std::string_view endpoint, std::string_view what) {
  if (is_unix(endpoint)) {
    UnixAddress{endpoint};
    return;
  }
  net::parse_host_port(endpoint, what);
}

std::string host_identity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[64] = {};
  ssize_t length = ::readlink("/proc/self/ns/net", space, sizeof space - 1);
  return boot + "/" + std::string(space, length > 0 ? static_cast<std::size_t>(length) : 0);
}

std::string process_identity() {
  // A forked child has the parent's token, but not its number.
  static const std::string token = random_hex();
  return fmt::format("{}-{}", ::getpid(), token);
}

net::Session ps_session(const net::Key& key) { return net::make_session(key, "parameter server"); }

net::Fd listen_at(std::string& endpoint, const net::Key& key) {
  if (is_unix(endpoint)) {
    UnixAddress address(endpoint);
    net::Fd fd = unix_socket();
    if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), 1024) != 0) {
      throw ConfigError(fmt::format("cannot listen at {}: {}", endpoint, std::strerror(errno)));
    }
    return fd;
  }
  auto colon = endpoint.rfind(':');
  bool any_port = colon != std::string::npos && endpoint.substr(colon) == ":0";
  auto place = net::parse_host_port(any_port ? endpoint.substr(0, colon) + ":1" : endpoint, "parameter server");
  net::Address address = net::resolve(place.host, any_port ? 0 : place.port).front();
  net::require_key_beyond_loopback(address, key);
  net::Fd fd = net::listen_at(address);
  endpoint = net::to_string(net::local_address(fd.get()));
  return fd;
}

net::Fd connect_to(const std::string& endpoint, const net::Key& key, std::string_view who, Deadline deadline) {
  if (is_unix(endpoint)) return connect_unix(endpoint, who, deadline);
  auto at = net::parse_host_port(endpoint, "parameter server");
  net::Place place{net::resolve(at.host, at.port), ps_session(key)};
  for (const auto& address : place.addresses) net::require_key_beyond_loopback(address, key);
  try {
    return net::connect_to([&] { return std::optional(place); }, kCall, deadline);
  } catch (const ProtocolError&) {
    throw ProtocolError(
        fmt::format("what listens at {} does not accept our key, so it is not {}; give workers, servers "
                    "and the coordinator the same TRIREME_KEY or TRIREME_KEY_FILE",
                    endpoint, who));
  } catch (const Timeout&) {
    throw Timeout(-1, fmt::format("{} does not answer at {} within {:g} s", who, endpoint, deadline.span_seconds()));
  }
}

Deadline patience_for(const std::string& endpoint) {
  return Deadline::in(is_unix(endpoint) ? std::chrono::milliseconds(0) : std::chrono::milliseconds(200));
}

bool same_user(const net::Fd& socket) {
  ucred who{};
  socklen_t length = sizeof who;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == ::getuid();
}

std::string local_host(const net::Fd& socket) {
  std::string text = net::to_string(net::local_address(socket.get()));
  return text.substr(0, text.rfind(':'));
}

}  // namespace trireme::ps

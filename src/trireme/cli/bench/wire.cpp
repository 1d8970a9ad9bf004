#include "trireme/cli/bench/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

constexpr std::size_t kLongestLine = 4096;

[[noreturn]] void fail(const std::string& what) { throw Error(what + ": " + std::strerror(errno)); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw ConfigError("the temporary folder's path is too long for a socket: " + path +
                      "; set TMPDIR to a shorter one");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int make_socket() {
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("cannot make a socket");
  return fd;
}

}  // namespace

Wire::~Wire() {
  if (fd_ >= 0) ::close(fd_);
}

Wire Wire::connect(const std::string& path) {
  auto address = address_of(path);
  Wire wire(make_socket());
  if (::connect(wire.fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot reach the benchmark at " + path);
  }
  return wire;
}

void Wire::send_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  send(std::as_bytes(std::span(text)));
}

void Wire::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("the other end is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void Wire::fetch(Deadline deadline) {
  pollfd poller{fd_, POLLIN, 0};
  int ready = ::poll(&poller, 1, deadline.left_ms());
  if (ready < 0 && errno == EINTR) return;
  if (ready < 0) fail("cannot wait for the other end");
  if (ready == 0) throw Timeout(-1, "no answer within " + std::to_string(deadline.span_seconds()) + " s");
  char buffer[65536];
  ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
  if (n < 0 && errno == EINTR) return;
  if (n < 0) fail("the other end is gone");
  if (n == 0) throw Error("the other end is gone");
  pending_.append(buffer, static_cast<std::size_t>(n));
}

std::string Wire::read_line(Deadline deadline) {
  while (true) {
    auto end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    if (pending_.size() > kLongestLine) throw ProtocolError("a line of more than 4 KiB");
    fetch(deadline);
  }
}

void Wire::read(std::span<std::byte> bytes, Deadline deadline) {
  while (pending_.size() < bytes.size()) fetch(deadline);
  std::memcpy(bytes.data(), pending_.data(), bytes.size());
  pending_.erase(0, bytes.size());
}

Listener::Listener(std::string path) : path_(std::move(path)), fd_(-1) {
  auto address = address_of(path_);
  fd_ = make_socket();
  if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 1024) != 0) {
    int error = errno;
    ::close(fd_);
    errno = error;
    fail("cannot listen at " + path_);
  }
}

Listener::~Listener() {
  ::close(fd_);
  ::unlink(path_.c_str());
}

int Listener::accept(Duration longest) {
  pollfd poller{fd_, POLLIN, 0};
  if (::poll(&poller, 1, static_cast<int>(longest.count() / 1'000'000)) <= 0) return -1;
  return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
}

}  // namespace trireme::bench

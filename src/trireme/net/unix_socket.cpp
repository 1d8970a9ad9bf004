#include "trireme/net/unix_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "trireme/base/error.h"

namespace trireme::net {
namespace {

struct AbstractName {
  explicit AbstractName(const std::string& name) {
    // A leading zero byte: the abstract namespace.
    if (name.size() + 1 > sizeof address.sun_path)
      throw ConfigError(fmt::format("the job name '{}' is too long", name));
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t length;
};

Fd make_socket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) throw Error(fmt::format("cannot make a Unix socket: {}", std::strerror(errno)));
  return fd;
}

ucred credentials(const Fd& socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) who.uid = static_cast<uid_t>(-1);
  return who;
}

bool wait_for(const Fd& socket, short events, Deadline deadline) {
  pollfd entry{socket.get(), events, 0};
  while (true) {
    int ready = poll(&entry, 1, deadline.left_ms());
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Fd listen_unix(const std::string& name, int backlog) {
  Fd fd = make_socket();
  AbstractName address(name);
  if (bind(fd.get(), address.get(), address.length) != 0) {
    if (errno == EADDRINUSE) throw ConfigError(fmt::format("a job named '{}' already runs on this host", name));
    throw Error(fmt::format("cannot bind the Unix socket '{}': {}", name, std::strerror(errno)));
  }
  if (listen(fd.get(), backlog) != 0) throw Error(fmt::format("cannot listen: {}", std::strerror(errno)));
  return fd;
}

std::optional<Fd> accept_unix(const Fd& listener, Deadline deadline) {
  while (wait_for(listener, POLLIN, deadline)) {
    Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd && credentials(fd).uid == getuid()) return fd;
  }
  return std::nullopt;
}

std::optional<Fd> connect_unix(const std::string& name, Deadline deadline) {
  AbstractName address(name);
  while (true) {
    Fd fd = make_socket();
    if (connect(fd.get(), address.get(), address.length) == 0) {
      if (credentials(fd).uid != getuid()) {
        throw ProtocolError(
            fmt::format("the Unix socket '{}' belongs to another user; is the job name theirs too?", name));
      }
      return fd;
    }
    if (errno != ECONNREFUSED && errno != EAGAIN && errno != ENOENT && errno != EINTR) {
      throw Error(fmt::format("cannot connect to the Unix socket '{}': {}", name, std::strerror(errno)));
    }
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int peer_pid(const Fd& socket) { return credentials(socket).pid; }

bool send_message(const Fd& socket, std::span<const std::byte> bytes, int fd, Deadline deadline) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  while (wait_for(socket, POLLOUT, deadline)) {
    auto sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(bytes.size())) return true;
    if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return false;
  }
  return false;
}

bool receive_message(const Fd& socket, std::span<std::byte> bytes, Fd& fd, Deadline deadline) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  while (wait_for(socket, POLLIN, deadline)) {
    auto got = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); got >= 0 && head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int received = -1;
      std::memcpy(&received, CMSG_DATA(head), sizeof received);
      fd = Fd(received);
    }
    return got == static_cast<ssize_t>(bytes.size()) && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  }
  return false;
}

}  // namespace trireme::net

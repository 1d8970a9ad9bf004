// Unix sockets in the abstract namespace, between processes of one user, that pass file descriptors.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "trireme/base/clock.h"
#include "trireme/net/fd.h"

namespace trireme::net {

// Throws ConfigError when the name is taken.
Fd listen_unix(const std::string& name, int backlog);
// The next connection from a process of this user (others are dropped); none when the deadline passes.
std::optional<Fd> accept_unix(const Fd& listener, Deadline deadline);
// Tries again until someone listens; none when the deadline passes. Throws ProtocolError if it is another user.
std::optional<Fd> connect_unix(const std::string& name, Deadline deadline);
int peer_pid(const Fd& socket);

// One message with at most one descriptor. False when the other side is gone or the deadline passes.
bool send_message(const Fd& socket, std::span<const std::byte> bytes, int fd, Deadline deadline);
bool receive_message(const Fd& socket, std::span<std::byte> bytes, Fd& fd, Deadline deadline);

}  // namespace trireme::net

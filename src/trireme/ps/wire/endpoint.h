// Where a coordinator or server listens: "@name", a Unix socket of this host that leaves no file, or "host:port".
#pragma once
#include <string>
#include <string_view>

#include "trireme/base/clock.h"
#include "trireme/net/fd.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/join/key.h"

namespace trireme::ps {

// A Unix socket name that nobody else has.
std::string fresh_name(std::string_view what);
inline bool is_unix(std::string_view endpoint) { return endpoint.starts_with('@'); }
// Throws ConfigError naming `what` when it is neither.
void check_endpoint(std::string_view endpoint, std::string_view what);

// Tells this host, as far as Unix sockets reach, from every other.
std::string host_identity();
// Tells this process from every other.
std::string process_identity();

// The secret that all members of a job share, bound to the parameter server.
net::Session ps_session(const net::Key& key);

// Non-blocking. `endpoint` becomes where it really listens (port 0: any). Throws ConfigError.
net::Fd listen_at(std::string& endpoint, const net::Key& key);
// Non-blocking, authenticated: by the user's id on a Unix socket, by the job key over TCP. Throws Timeout when nobody
// answers and ProtocolError when refused; `who` is named in both.
net::Fd connect_to(const std::string& endpoint, const net::Key& key, std::string_view who, Deadline deadline);
// For calls from a loop that must go on: nobody listening is known at once on a Unix socket.
Deadline patience_for(const std::string& endpoint);
// Whether the other end of a Unix socket is a process of this user.
bool same_user(const net::Fd& socket);
// The host part of our own address on a connection over TCP.
std::string local_host(const net::Fd& socket);

}  // namespace trireme::ps

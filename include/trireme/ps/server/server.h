// A server of the parameter server: keeps shards for as long as it lives. Runs as a thread of any process; `trireme
// serve` is one in a process of its own.
#pragma once
#include <memory>
#include <string>

#include "trireme/base/clock.h"
#include "trireme/net/join/key.h"
#include "trireme/ps/server/update.h"

namespace trireme::ps {

struct ServerOptions {
  std::string at = {};    // the coordinator's endpoint
  net::Key key = {};      // the job's
  std::string name = {};  // for people, and to find its shards again after a restart; default: "server-PID"
  // "host:port" for workers on other hosts; default: beside the coordinator's address if that is TCP.
  std::string listen = {};
  UpdateMakers updates = {};    // besides the built-in ones
  std::string checkpoint = {};  // a folder; empty: none is written
  double checkpoint_every_s = 30;
  double connect_timeout_s = 30;
};

class Server {
 public:
  // Joins the job, and takes up the shards of its last checkpoint if there is one. Throws ConfigError, Timeout,
  // ProtocolError, DataError.
  explicit Server(ServerOptions options);
  // Ends at once, as if it died, but for a last checkpoint; leave() first where the job goes on.
  ~Server();
  Server(const Server&) = delete;

  const std::string& name() const;
  // Its shards move to other servers, then it ends. Throws Timeout when they do not in time.
  void leave(Deadline deadline);
  // Until the job is over or the deadline passes (false). Throws what ended the server when that was an error.
  bool wait(Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::ps

// Knows who is in the job, decides who keeps which shard, and tells everybody. Small: no weight and no gradient passes
// through it. It may run as a thread of any process; when it ends, the job does.
#pragma once
#include <memory>
#include <string>

#include "trireme/net/join/key.h"

namespace trireme::ps {

struct View;  // who is in the job and keeps which shard

struct CoordinatorOptions {
  std::string at = {};  // where to listen: "@name" or "host:port"; empty: a Unix socket of a fresh name
  net::Key key = {};    // the job's
  int workers = 1;      // that the job begins with; more may join
  int servers = 1;      // as many must be there before shards are placed; more may join
  int replicas = 1;     // copies of each shard, as far as there are servers
  int shards_per_server = 4;
  double lease_s = 2;     // who is silent for longer is dead
  double restart_s = 30;  // how long to wait for a server with a checkpoint to come back
};

class Coordinator {
 public:
  // Throws ConfigError when it cannot listen there.
  explicit Coordinator(CoordinatorOptions options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;

  // Where members find it; TRIREME_PS for theirs.
  const std::string& endpoint() const;
  // The newest view; from any thread.
  View view() const;
  // Whether the job runs and every shard has all the copies it shall have, whole: one server may die now.
  bool whole() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::ps

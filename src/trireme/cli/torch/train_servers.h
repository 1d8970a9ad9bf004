// `trireme train` with a parameter server: who of the launched processes is what. Ranks below the number of workers are
// workers, then come the servers that are processes of their own, and last the coordinator.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/net/fd.h"
#include "trireme/ps/client/client.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"
#include "trireme/train/config/config.h"

namespace trireme::cli {

struct Cast {
  int workers = 1;
  int servers = 0;        // processes, or threads where workers are
  bool colocated = true;  // a server in each worker instead
  int remote = 0;         // servers that are started by hand, with `trireme serve`
  int replicas = 1;
  double lease_s = 2;

  int processes() const { return workers + servers + 1; }
  int all_servers() const { return (colocated ? workers : servers) + remote; }
  bool is_worker(int rank) const { return rank < workers; }
  bool is_server(int rank) const { return rank >= workers && rank < workers + servers; }
  // Which of so many emulated hosts: workers evenly and in order, servers in turn, the coordinator on the first.
  int host(int rank, int hosts) const;
  // "worker 1", "server 0", "the coordinator"
  std::string name(int rank) const;
  // Whether a job that has begun goes on without it: all workers but the last, and servers whose weights have another
  // copy.
  bool expendable(int rank) const;
};
// Throws ConfigError.
Cast cast_of(const train::Config& config, int remote);

ps::CoordinatorOptions coordinator_options(const Cast& cast, const std::string& at, const net::Key& key);
ps::ServerOptions server_options(int number, const std::string& at, const net::Key& key);

// How the launcher learns from the coordinator's process that the job has begun: before, it can do without nobody.
class JobBegun {
 public:
  static constexpr const char* kVariable = "TRIREME_PS_BEGUN";
  JobBegun();
  // For the coordinator's process to inherit, which finds the number in that variable.
  int fd() const { return event_.get(); }
  bool is_set() const;
  // By that process.
  static void set();

 private:
  net::Fd event_;
};

// The coordinator's process: until every worker has left, or none has come within the timeout.
void coordinate(const Cast& cast, const std::string& at, const net::Key& key, double timeout_s);
// A server's process: until the job is over.
void serve(const Cast& cast, int rank, const std::string& at, const net::Key& key);

}  // namespace trireme::cli

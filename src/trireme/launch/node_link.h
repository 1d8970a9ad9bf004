// How the launchers of a job on several hosts work together. Node 0 listens, the others call it and stay connected:
//
//   node k → 0   (mutual authentication by the job key, see auth.h)   join: workers, host
//   0 → node k   welcome: ranks, ports, job name
//   both ways    beat four times a second; signal: a signal for all workers
//   node k → 0   failed: a worker's death; done: all workers here ended well
//   0 → node k   stop: who died and how; finish: all workers of all nodes ended well
//
// Node 0 decides what happened and tells everyone. A connection that closes early or is silent for too long is a lost
// node, which stops the job like a dead worker.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trireme/launch/event_loop.h"
#include "trireme/net/join/key.h"
#include "trireme/net/socket.h"

namespace trireme::launch {

// Where this launcher's workers stand in the job.
struct Placement {
  int first_rank = 0;
  int world_size = 1;
  std::string job;
  std::string master_host;  // where node 0 is reached from here; numeric
  int master_port = 0;      // free on node 0, for programs of others
  int rendezvous_port = 0;  // where rank 0 listens
  std::string bind;         // this node's own address
};

// Why the job ends badly. Of several that come at once the one whose cause stands first is told: a worker that gave up
// because another was gone (PeerLost, Timeout, Aborted) is a consequence.
struct JobFailure {
  enum Cause : int { cannot_start, killed, lost_node, exited, gave_up };
  Cause cause = exited;
  int exit_code = 1;
  std::string text;
};

struct NodeEvents {
  std::function<void(const Placement&)> placed;
  std::function<void(const JobFailure&)> failed;  // at node 0: consider it; elsewhere: node 0 has decided, stop
  std::function<void(int number)> signal;
  std::function<void()> finished;
  std::function<void(std::string_view line)> say;
};

struct NodeSpec {
  int nodes = 1;
  int node = 0;
  int workers = 1;
  std::string host;  // this one's name
  net::HostPort endpoint;
  net::Address listen;  // node 0: where
  net::Key key;
  double timeout_s = 60;
  double silence_s = 3;
};

class NodeLink {
 public:
  virtual ~NodeLink() = default;
  virtual void done() = 0;
  // Node 0: tells everyone to stop. Elsewhere: tells node 0, which decides.
  virtual void fail(const JobFailure& failure) = 0;
  virtual void forward_signal(int number) = 0;
  // Whether the process may leave: all that was said has arrived, or a second went by.
  virtual bool settled() const = 0;
  virtual bool decides() const = 0;
};

// Node 0. `job`, `master_port` and `rendezvous_port` of `offer` go to every node. Throws ConfigError when it cannot
// listen. Placement and everything else comes by events, from within EventLoop::step().
std::unique_ptr<NodeLink> listen_for_nodes(EventLoop& loop, const NodeSpec& spec, const Placement& offer,
                                           NodeEvents events);
// Any other node.
std::unique_ptr<NodeLink> call_node_zero(EventLoop& loop, const NodeSpec& spec, NodeEvents events);

// The host part of an address, without brackets.
std::string numeric_host(const net::Address& address);

}  // namespace trireme::launch

// A parameter server in time: pushes and pulls of workers, by the clocks that the servers themselves go by
// (ps/clock.h). Private to the simulator.
//
// S servers keep a share of the model each. A push reaches them over the workers' way out and theirs in, in the order
// sent; where workers share a node's memory with a server, gradients and weights are read and written in place. A
// server applies what has become visible and answers the pulls that may be answered, one after the other.
#pragma once
#include <map>
#include <vector>

#include "trireme/cluster/sim/job/async_sim.h"
#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/cluster/sim/nics.h"
#include "trireme/ps/clock.h"

namespace trireme::cluster {

class ServersInTime {
 public:
  ServersInTime(Simulation& simulation, ps::Consistency consistency, AsyncSim& those);

  // A server's answer to a pull, ready to leave.
  struct Answer {
    std::size_t server = 0;
    int worker = 0;
    double at_s = 0;
  };
  struct Pushed {
    std::uint64_t staleness = 0;                          // of the share with most
    double arrived_s = 0;                                 // at the last server
    std::vector<Answer> answers;                          // that leave servers because of it
    double latency_s = 0, bandwidth_s = 0, coding_s = 0;  // of this push and a pull, alone
  };
  // A worker's push, and the pull that goes with it, leave at `now`. Calls come in the order of time.
  Pushed push(int worker, double now);
  // Sends an answer. Where it was the last of a pull: when all of it is there; else negative.
  double deliver(const Answer& answer);
  // Of the weights, by one worker, with nobody else there.
  double pull_alone(int worker) const;

 private:
  struct Held {
    int worker;
    std::uint64_t clock;
  };
  struct Server {
    int place = 0;                           // a rank of the whole cluster
    double busy_s = 0;                       // until
    std::uint64_t version = 0;               // pushes that were applied
    std::map<std::uint64_t, int> pushes_of;  // by clock: that came and are not applied yet
    std::vector<std::uint64_t> clocks, applied, read_version, read_applied;  // by worker
    std::map<std::uint64_t, int> workers_at;                                 // by clock, for the minimum
    std::vector<Held> held;
  };
  std::uint64_t minimum(const Server& server) const;
  void take(std::size_t number, int worker, double arrived, Pushed& pushed);
  void apply(Server& server, double& work_s);
  void answer(std::size_t number, double now, Pushed& pushed);
  bool in_place(int worker, const Server& server) const;
  double wakes_s(int from, int to) const;
  double send(int from, int to, double bytes, double now, bool in_place);
  // A server works for so long on its own: when it is done if it begins at `begin`.
  double works(const Server& server, int woken_by, double begin, double work_s);
  // A message between a server and a worker of another node takes from those who compute on the server's.
  void passes_by(const Server& server, int worker, double begin);
  std::vector<int> computing(const Server& server, double at) const;  // of its node's workers

  Simulation& sim_;
  const ps::Consistency consistency_;
  AsyncSim& workers_;
  const bool coded_;
  const double hop_s_;  // of a request within a host
  Nics nics_;
  std::vector<Server> servers_;
  double share_bytes_ = 0;                                                       // of the model, of a server
  double message_bytes_ = 0;                                                     // of a push to a server, or its answer
  double fold_s_ = 0, update_s_ = 0, give_s_ = 0, decode_s_ = 0, encode_s_ = 0;  // of a share
  std::vector<int> missing_;                 // by worker: servers that have not answered its pull
  std::vector<double> there_s_;              // by worker: when the last answer was there
  std::map<int, std::vector<int>> on_node_;  // workers by node
};

}  // namespace trireme::cluster

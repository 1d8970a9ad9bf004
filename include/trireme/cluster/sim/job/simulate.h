// What a job will do on a cluster, without running it: the strategies' own exchange plans (sync/exchange_plan.h), the
// collectives' own schedules and the bucket planner, played in virtual time with a profile's compute.
//
// All times are seconds. One seed, one result.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/text/trace.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/profile/profile.h"
#include "trireme/cluster/sim/traffic.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/saving.h"
#include "trireme/sync/strategies.h"

namespace trireme::mesh {
struct MeshSplits;
}

namespace trireme::cluster {

struct Job {
  const Profile* profile = nullptr;
  sync::Choice strategy;          // sync::Choice::parse("allreduce")
  std::string compress = "none";  // as --compress
  std::string compress_rules;     // as --compress-rule
  std::string bucket_plan = "optimal";
  std::string algorithm = "auto";  // of every collective that has one of this name; auto: what the runtime picks
  int lanes = 1;                   // exchanges under way at once
  int workers = 0;                 // 0: all of the cluster
  int servers = 0;                 // of strategies that need them; 0: colocated, one with each worker
  int steps = 20;                  // simulated, of each worker
  std::uint64_t seed = 1;
  bool trace = false;
  bool accesses = false;  // tell who read and changed which weights when, for cosimulate.h
  Observer observe = {};  // sees every message of strategies whose workers talk to each other, as they begin
  enum class Turn { as_train, background, in_line } turn = Turn::as_train;  // as --exchange
  // For searches on many workers: sizes in between those played lie on straight lines, who is late makes all late, no
  // link's traffic is told, and servers go by their bandwidth.
  bool coarse = false;
  bool noise = true;  // stragglers and jitter; off: every step takes its median
  bool own = false;   // the profile is of this very job: its compute holds what the training loop copies and asks
  // Where the model is on a mesh: its step by predict_mesh, the data axis's exchange over the cluster's network.
  mesh::MeshShape mesh;
  int micro_batches = 1;
  mesh::Saving saving;
  std::string schedule = "1f1b";
  bool hybrid = false;                            // as --hybrid alexnet: hybrid.h
  std::shared_ptr<mesh::MeshSplits> splits = {};  // of many jobs with one profile: where pieces were cut
};

// Means over the steps that count, of a worker; the words of run.json's breakdown_ms.
struct Breakdown {
  double forward = 0, backward = 0, communication = 0, exposed = 0, optimizer = 0, other = 0;
  double step() const { return forward + backward + exposed + optimizer + other; }
};

struct WorkerTimes {
  double compute_s = 0, wait_s = 0;  // over all steps
  std::int64_t steps = 0;
  std::uint64_t bytes_sent = 0;
};

// Where the exchange's seconds go, of a step of the first worker, for `trireme diff`.
struct ExchangeParts {
  double latency = 0;    // messages · α of the slowest chain
  double bandwidth = 0;  // the rest of what moves bytes
  double queueing = 0;   // buckets that were full waited for the channel
  double waiting = 0;    // for other workers
  double coding = 0;     // encoding and decoding
};

// Of workers at their own pace: whoever reads weights, and changes them, in the order of time.
struct Access {
  enum class What : std::uint8_t {
    read,     // the weights that the worker's next gradient is of
    apply,    // its gradient changes the weights: the servers', the shared ones, or its own
    average,  // its weights and those of `peer` become their mean
  };
  What what = What::read;
  int worker = 0, peer = -1;
  std::int64_t step = 0;  // of the worker
  double at_s = 0;
};

struct Simulated {
  double step_s = 0;         // the job's pace: of a worker, mean over all steps
  double step_median_s = 0;  // of the first worker
  Breakdown breakdown_s;
  ExchangeParts exchange_s;
  std::vector<WorkerTimes> workers;
  std::map<std::int64_t, std::int64_t> stale;  // as sync::Report's, over all workers
  std::uint64_t bytes_sent = 0;                // by all workers, over all steps
  std::uint64_t messages = 0;
  Traffic traffic;
  int link = -1;  // the busiest, in the cluster's topology; none: -1
  std::string busiest;
  double utilisation = 0;          // of it, from 0 to 1
  std::uint64_t memory_bytes = 0;  // of the worker that needs most, on a mesh; else 0
  std::size_t buckets = 0;         // of a step, where gradients travel in backward
  std::vector<double> step_ends;   // of the first worker
  std::vector<TraceEvent> trace;   // with Job::trace
  std::vector<Access> accesses;    // with Job::accesses
  Tier tier = Tier::closed_form;   // the finest that was needed
  std::string why;                 // one line: where the time goes
  double samples_per_s = 0;
  std::string strategy, compress;  // as asked for, with every setting
};

// Throws ConfigError where the job cannot run: no such algorithm, more workers than the cluster has, a codec that the
// strategy does not take.
Simulated simulate(const Cluster& cluster, const Job& job);
// For many jobs on one cluster: what was found out about its network is kept.
Simulated simulate(const Network& network, const Job& job);

}  // namespace trireme::cluster

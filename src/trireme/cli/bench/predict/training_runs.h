// What `trireme bench predict` runs: tune, profile and train, of one model in one place.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/bench/session.h"
#include "trireme/cli/bench/turns.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/profile/profile.h"
#include "trireme/sync/strategies.h"

namespace trireme::bench {

// Where workers run: on this host, or on emulated ones with such links.
struct Place {
  std::string name;       // "this host", "2 hosts, 1gbit"
  std::string bandwidth;  // of emulated hosts; empty: this host

  bool emulated() const { return !bandwidth.empty(); }
};

// The cluster that a place is, its costs as tune measures them there now. Throws Error where tune failed.
cluster::Cluster measured_cluster(const Place& place, int workers);

// A way to train.
struct Way {
  std::string strategy, codec;
  std::string launch = "processes";
  bool servers = false;

  std::string name() const { return strategy + " " + codec; }
};
// Of these strategies and codecs all that run in the place; no strategies: all of them. What sends nothing before it
// ends is the same way with every codec.
std::vector<Way> ways_of(const std::vector<std::string>& strategies, const std::vector<std::string>& codecs,
                         const Place& place);
// One that exchanges nothing while it trains.
Way without_exchange();

class TrainingRuns {
 public:
  static constexpr std::int64_t kSettled = 20;  // steps: buckets are planned, caches and clocks have settled

  // `model`: NAME or NAME:BATCH. All below throw Error where the program fails.
  TrainingRuns(const Place& place, int workers, const std::string& model);

  cluster::Profile profile();

  // Of which so many steps after the first kSettled; it waits for its turns.
  std::unique_ptr<PausedRun> start(const Way& way, std::int64_t steps);

 private:
  Argv command(const Way& way, std::int64_t steps, const std::string& out) const;
  std::string next_folder();

  const Place& place_;
  const int workers_;
  std::vector<std::string> model_;  // flags
  TemporaryFolder folder_;
  int runs_ = 0;
};

}  // namespace trireme::bench

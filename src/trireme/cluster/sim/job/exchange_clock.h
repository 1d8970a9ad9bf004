// Exchanges on a network's time: begins to ends, by rank, with what they moved. Private to the simulator.
#pragma once
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "trireme/cluster/sim/collective_time.h"
#include "trireme/cluster/sim/job/coding.h"

namespace trireme::cluster {

class ExchangeClock {
 public:
  // `algorithm`: of every collective that has one of this name; the others, and auto, by what the runtime picks.
  // Throws ConfigError for a name that no collective has. The network must outlive it.
  // `observe`, where there is one, sees every message of what is run.
  // Coarsely: as Job::coarse.
  ExchangeClock(const Network& network, std::string_view algorithm, Observer observe = {}, bool coarse = false);

  // Advances each rank's time from where it begins to where it ends, all legs one after the other.
  void run(const Legs& legs, std::span<double> times);
  // Of a leg alone.
  void run(const Leg& leg, std::span<double> times);
  // All begin at once: seconds until the last is done; of a leg without what is computed before it. Moves nothing.
  double alone(const Leg& leg);
  double alone(const Legs& legs);
  // Of alone(): what would be left if no byte took any time.
  double latency(const Legs& legs);

  const Traffic& traffic() const { return traffic_; }
  Traffic& traffic() { return traffic_; }
  std::uint64_t messages() const { return messages_; }
  Tier tier() const { return tier_; }
  // By one rank, over all that was run: as the runtime counts it.
  double sent_by_each() const { return sent_; }

 private:
  struct Known {
    std::vector<double> ends;  // by rank, of all beginning at 0
    Traffic traffic;
    Played played;
    double longest = 0;
    double sent = 0;  // by a rank, on average
  };
  using Key = std::tuple<Collective, std::size_t, std::size_t>;
  const Known& known(const Leg& leg);
  double coarse_s(const Leg& leg) const;
  const Algorithm& algorithm_for(const Leg& leg) const;
  Call call_of(const Leg& leg) const;
  double bytes_of_each(const Leg& leg) const;

  const Network& network_;
  const std::string algorithm_;
  const Observer observe_;
  const bool coarse_;
  std::map<Key, Known> known_;
  Traffic traffic_;
  std::uint64_t messages_ = 0;
  double sent_ = 0;
  Tier tier_ = Tier::closed_form;
};

}  // namespace trireme::cluster

// What both ways to simulate start from. Private to the simulator.
#pragma once
#include <algorithm>
#include <string>

#include "trireme/cluster/sim/job/exchange_clock.h"
#include "trireme/cluster/sim/job/pace.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/ps/clock.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cluster {

// Seconds of a worker's step without any exchange, at the profile's median.
struct StepCost {
  double forward = 0, backward = 0, optimizer = 0, other = 0;
};

constexpr double kHalf = 0.5;  // of a core has each of two threads that compute on it

// What something that lasts so long takes from so much compute beside it, at a share of each second.
inline double taken(double lasts_s, double share, double compute_s) {
  if (share < 1) return std::min(share * lasts_s, compute_s * share / (1 - share));
  return compute_s > 0 ? lasts_s : 0;
}

// What goes on behind a worker's back, and so takes from its compute.
struct Beside {
  double left_s = 0;  // it has not taken yet
  double share = 0;   // of each second that it takes while it lasts

  void add(double seconds, double of_each) {
    left_s += seconds;
    share = std::max(share, of_each);
  }
  // Takes what it takes from so much compute, and says how much that is.
  double take(double compute_s) {
    const double taken = share < 1 ? std::min(left_s, compute_s * share / (1 - share)) : left_s;
    left_s -= taken;
    return taken;
  }
};

class Simulation {
 public:
  Simulation(const Network& whole, const Job& of);

  const Network& all;  // where servers may be, too
  const Job& job;
  const Profile& profile;
  const int ranks;
  const Network network;  // of the workers
  const StepCost cost;
  const Coding coding;
  ExchangeClock clock;
  Pace pace;
  const double model_bytes;
  const double touch_s;  // to read or write a vector of the model's length, and to copy one
  const double copy_s;
  const double downloads_s;   // at each moment of a strategy: weights from the device and back; none in backward
  const bool spare;           // nodes have more cores than workers compute on
  const bool in_line;         // exchanges run on the training thread, as no core is spare
  const double theft;         // θ
  const double handover_s;    // to give another thread something to do and hear that it is done
  const std::int64_t period;  // steps after which the exchange plan repeats itself
  const std::int64_t steps;   // to simulate: a whole number of periods
  const std::int64_t warm;    // steps before those that count

  sync::ExchangePlanAt at(int rank, std::int64_t step) const;
  // Passes of an exchange plan at a moment, in seconds: those of the strategy, or of the training loop for it.
  double passes(const sync::ExchangePlan& exchange_plan, sync::Moment moment, bool late) const;
  double laid_out(const sync::ExchangePlan& exchange_plan) const;
  // An exchange in the background, while a worker computes for so long: how much longer each of the two takes than
  // alone.
  struct Slowdown {
    double exchange_s = 0, compute_s = 0;
  };
  Slowdown slowdown(const Legs& legs, double compute_s);
  // What every vector that travels is made of.
  Legs legs_of(sync::Exchange::Of of) const;
  double bytes_of(sync::Exchange::Of of) const;

  void event(Simulated& result, const char* name, const char* lane, int rank, double begin, double end,
             std::int64_t step, std::vector<std::pair<std::string, double>> args = {}) const;
};

// Workers that meet: arrays over ranks, step by step.
Simulated simulate_steps(Simulation& simulation);
// Workers at their own pace, with servers, in pairs or on one memory: events in the order of time.
Simulated simulate_events(Simulation& simulation);
// With parameter servers on many workers, coarsely: by what their links carry.
Simulated simulate_servers(Simulation& simulation, ps::Consistency consistency);
// On a mesh with more than a data axis.
Simulated simulate_mesh(Simulation& simulation);

// Convolutions replicated, the layers behind them split.
Simulated simulate_hybrid(Simulation& simulation);

// Fills what follows from the rest: rates, bytes and `why`.
void conclude(Simulation& simulation, Simulated& result);

}  // namespace trireme::cluster

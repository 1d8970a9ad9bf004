// What simulations of workers at their own pace have in common: events in the order of time, tickets, compute, and the
// books. Private to the simulator.
#pragma once
#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/cluster/sim/nics.h"

namespace trireme::cluster {

// Things that happen at a time; of those at the same time the one that was put first.
class EventQueue {
 public:
  using Do = std::function<void(double now)>;
  void put(double at_s, Do what) { events_.push({at_s, number_++, std::move(what)}); }
  void run() {
    while (!events_.empty()) {
      auto event = std::move(const_cast<Event&>(events_.top()));
      events_.pop();
      event.what(event.at_s);
    }
  }

 private:
  struct Event {
    double at_s;
    std::uint64_t number;
    Do what;
    bool operator<(const Event& other) const { return at_s != other.at_s ? at_s > other.at_s : number > other.number; }
  };
  std::priority_queue<Event> events_;
  std::uint64_t number_ = 0;
};

class AsyncSim {
 public:
  virtual ~AsyncSim() = default;
  Simulated run();

  // Seconds of compute that a worker in the midst of it has left at a time.
  double compute_left(int worker, double at) const {
    return std::max(0.0, workers_[static_cast<std::size_t>(worker)].computes_until_s - at);
  }
  // Something goes on from `from` for so long that takes a share of each second in which the worker computes.
  void disturb(int worker, double from, double lasts, double share);

 protected:
  AsyncSim(Simulation& simulation, bool shares_tickets);

  struct Worker {
    std::int64_t step = 0;         // that it is in
    double begun_s = 0;            // of its step
    double computes_until_s = 0;   // as far as that was known when it began
    double taken_s = 0;            // meanwhile, and so from its next compute
    double factor = 1;             // of compute in this step
    double zero_s = 0, end_s = 0;  // of its steps that count
    sync::ExchangePlan exchange_plan;
  };
  // A step of the worker begins: what comes before forward is up to the strategy, who goes on with compute().
  virtual void begin_step(int worker, double now) = 0;
  // Forward and backward; returns when they end.
  double compute(int worker, double now);
  // The optimizer of the worker; returns when it has ended.
  double optimize(int worker, double now);
  // Ends the step: the next one begins, if there is one.
  void end_step(int worker, double now);
  // Something of which the training thread waits, or that it computes for the strategy.
  void expose(int worker, double seconds);
  double passes(int worker, sync::Moment at, bool late) const;
  void access(Access::What what, int worker, double now, int peer = -1);
  void stale(std::int64_t by) { ++result_.stale[by]; }
  bool counts(int worker) const { return workers_[static_cast<std::size_t>(worker)].step >= sim_.warm; }

  Simulation& sim_;
  Simulated result_;
  EventQueue events_;
  std::vector<Worker> workers_;

 private:
  void start(int worker, double now);

  const bool shares_tickets_;
  std::int64_t tickets_;  // that are left, of all
};

}  // namespace trireme::cluster

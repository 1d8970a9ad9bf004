#include "trireme/cluster/sim/job/async_sim.h"

#include <algorithm>

namespace trireme::cluster {

AsyncSim::AsyncSim(Simulation& simulation, bool shares_tickets)
    : sim_(simulation),
      workers_(static_cast<std::size_t>(simulation.ranks)),
      shares_tickets_(shares_tickets),
      tickets_((simulation.warm + simulation.steps) * simulation.ranks) {
  result_.workers.resize(workers_.size());
  result_.tier = Tier::max_plus;
}

Simulated AsyncSim::run() {
  for (int worker = 0; worker < sim_.ranks; ++worker) start(worker, 0);
  events_.run();
  double rate = 0;  // steps a second, of all workers
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const double seconds = workers_[w].end_s - workers_[w].zero_s;
    if (seconds > 0) rate += static_cast<double>(result_.workers[w].steps) / seconds;
  }
  if (rate > 0) result_.step_s = sim_.ranks / rate;
  std::ranges::stable_sort(result_.accesses, {}, &Access::at_s);
  return std::move(result_);
}

void AsyncSim::start(int worker, double now) {
  auto& one = workers_[static_cast<std::size_t>(worker)];
  const bool more = shares_tickets_ ? tickets_ > 0 : one.step < sim_.warm + sim_.steps;
  if (!more) return;
  --tickets_;
  if (one.step == sim_.warm) one.zero_s = now;
  one.begun_s = now;
  one.factor = sim_.pace.factor(worker, one.step, now);
  one.exchange_plan = sim_.job.strategy.exchange_plan(sim_.at(worker, one.step));
  begin_step(worker, now);
}

double AsyncSim::compute(int worker, double now) {
  auto& one = workers_[static_cast<std::size_t>(worker)];
  const double forward = sim_.cost.forward * one.factor;
  const double own = sim_.cost.backward * one.factor;
  const double backward = own + std::exchange(one.taken_s, 0.0);
  one.computes_until_s = now + forward + backward;
  sim_.event(result_, "forward", "compute", worker, now, now + forward, one.step);
  sim_.event(result_, "backward", "compute", worker, now + forward, now + forward + backward, one.step);
  if (counts(worker)) {
    result_.workers[static_cast<std::size_t>(worker)].compute_s += forward + backward;
    if (worker == 0) {
      result_.breakdown_s.forward += forward;
      result_.breakdown_s.backward += backward;
    }
  }
  return now + forward + backward;
}

void AsyncSim::disturb(int worker, double from, double lasts, double share) {
  workers_[static_cast<std::size_t>(worker)].taken_s += taken(lasts, share, compute_left(worker, from));
}

double AsyncSim::optimize(int worker, double now) {
  const auto& one = workers_[static_cast<std::size_t>(worker)];
  const double seconds = sim_.cost.optimizer * one.factor;
  sim_.event(result_, "optimizer", "compute", worker, now, now + seconds, one.step);
  if (counts(worker)) {
    result_.workers[static_cast<std::size_t>(worker)].compute_s += seconds;
    if (worker == 0) result_.breakdown_s.optimizer += seconds;
  }
  return now + seconds;
}

void AsyncSim::end_step(int worker, double now) {
  auto& one = workers_[static_cast<std::size_t>(worker)];
  const double other = sim_.cost.other * one.factor;
  const double end = now + other;
  if (counts(worker)) {
    ++result_.workers[static_cast<std::size_t>(worker)].steps;
    one.end_s = end;
    if (worker == 0) {
      result_.breakdown_s.other += other;
      result_.step_ends.push_back(end - one.zero_s);
    }
  }
  ++one.step;
  events_.put(end, [this, worker](double then) { start(worker, then); });
}

void AsyncSim::expose(int worker, double seconds) {
  if (!counts(worker)) return;
  result_.workers[static_cast<std::size_t>(worker)].wait_s += seconds;
  if (worker != 0) return;
  result_.breakdown_s.exposed += seconds;
  result_.breakdown_s.communication += seconds;
}

double AsyncSim::passes(int worker, sync::Moment at, bool late) const {
  return sim_.passes(workers_[static_cast<std::size_t>(worker)].exchange_plan, at, late);
}

void AsyncSim::access(Access::What what, int worker, double now, int peer) {
  if (!sim_.job.accesses) return;
  result_.accesses.push_back({what, worker, peer, workers_[static_cast<std::size_t>(worker)].step, now});
}

}  // namespace trireme::cluster

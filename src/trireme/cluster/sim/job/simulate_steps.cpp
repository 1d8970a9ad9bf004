// Workers that meet: arrays over ranks, step by step, moment by moment, as trainer/trainer.cpp goes through a step.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/median.h"
#include "trireme/cluster/sim/flows.h"
#include "trireme/cluster/sim/job/buckets_in_time.h"
#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/cluster/sim/nics.h"

namespace trireme::cluster {
namespace {

using sync::Exchange;
using sync::Moment;
using What = Exchange::What;

class Steps {
 public:
  explicit Steps(Simulation& simulation)
      : sim_(simulation),
        now_(static_cast<std::size_t>(simulation.ranks)),
        free_(now_.size()),
        beside_(now_.size()),
        factor_(now_.size(), 1.0),
        courses_(now_.size()),
        nics_(simulation.network) {
    result_.workers.resize(now_.size());
  }

  Simulated run() {
    std::vector<double> begun;
    for (std::int64_t k = 0; k < sim_.warm + sim_.steps; ++k) {
      counts_ = k >= sim_.warm;
      if (k == sim_.warm) begun = now_;
      step(k);
      if (counts_) result_.step_ends.push_back(now_[0] - begun[0]);
    }
    double elapsed = 0;
    for (std::size_t r = 0; r < now_.size(); ++r) elapsed += (now_[r] - begun[r]) / static_cast<double>(now_.size());
    result_.step_s = elapsed / static_cast<double>(sim_.steps);
    if (buckets_) result_.buckets = buckets_->count();
    return std::move(result_);
  }

 private:
  void step(std::int64_t k) {
    for (std::size_t r = 0; r < now_.size(); ++r) {
      courses_[r] = sim_.job.strategy.exchange_plan(sim_.at(static_cast<int>(r), k));
      factor_[r] = sim_.pace.factor(static_cast<int>(r), k, now_[r]);
    }
    in_backward_ = std::ranges::any_of(courses_[0], [](const auto& one) { return one.what == What::buckets; });
    moment(Moment::before_forward, k);
    compute(sim_.cost.forward, &Breakdown::forward, "forward", k);
    if (in_backward_) {
      backward_in_buckets(k);
    } else {
      compute(sim_.cost.backward, &Breakdown::backward, "backward", k);
    }
    for (std::size_t r = 0; r < now_.size(); ++r) lay_out(r);
    moment(Moment::after_backward, k);
    compute(sim_.cost.optimizer, &Breakdown::optimizer, "optimizer", k);
    moment(Moment::after_step, k);
    compute(sim_.cost.other, &Breakdown::other, nullptr, k);
    if (!counts_) return;
    for (auto& worker : result_.workers) ++worker.steps;
  }

  void compute(double seconds, double Breakdown::*part, const char* name, std::int64_t k) {
    for (std::size_t r = 0; r < now_.size(); ++r) {
      const double begin = now_[r];
      const double own = seconds * factor_[r];
      now_[r] += own + beside_[r].take(own);
      if (!counts_) continue;
      result_.workers[r].compute_s += now_[r] - begin;
      if (r == 0) result_.breakdown_s.*part += now_[r] - begin;
      if (name) sim_.event(result_, name, "compute", static_cast<int>(r), begin, now_[r], k);
    }
  }

  void lay_out(std::size_t r) {
    const double seconds = sim_.laid_out(courses_[r]);
    now_[r] += seconds;
    if (r == 0 && counts_) result_.breakdown_s.other += seconds;
  }

  // The strategy's turn. All that it takes the worker is told as exposed, as a run does.
  void moment(Moment at, std::int64_t k) {
    if (in_backward_) return;
    const std::vector<double> before = now_;
    passes(at, false);
    for (const auto& one : courses_[0]) {
      if (one.what == What::mean && one.start == at) start_mean(one, k);
    }
    start_sends(at, k);
    wait(at, k);
    passes(at, true);
    for (std::size_t r = 0; r < now_.size(); ++r) expose(r, now_[r] - before[r], now_[r] - before[r]);
  }

  void expose(std::size_t r, double exposed, double communication) {
    if (!counts_) return;
    result_.workers[r].wait_s += exposed;
    if (r != 0) return;
    result_.breakdown_s.exposed += exposed;
    result_.breakdown_s.communication += communication;
  }

  void passes(Moment at, bool late) {
    for (std::size_t r = 0; r < now_.size(); ++r) now_[r] += sim_.passes(courses_[r], at, late);
  }

  // ---- Means ----

  struct Pending {
    std::vector<double> ends;
    Moment wait;
    std::int64_t due;
  };

  void start_mean(const Exchange& one, std::int64_t k) {
    const auto legs = sim_.legs_of(one.of);
    const bool blocking = one.start == one.wait && one.later == 0;
    // Models travel as differences to what all have in common: made before, added after.
    const double differences = one.of == Exchange::Of::model && !sim_.coding.none() ? sim_.touch_s : 0;
    std::vector<double> times = now_;
    for (std::size_t r = 0; r < times.size(); ++r) times[r] = std::max(times[r], free_[r]) + 3 * differences;
    const auto begins = times;
    sim_.clock.run(legs, times);
    const auto longer = blocking ? Simulation::Slowdown{} : sim_.slowdown(legs, compute_between(one));
    for (double& time : times) time += longer.exchange_s;
    const double alone = sim_.clock.alone(legs);
    account(begins[0], times[0], alone, sim_.clock.latency(legs), legs.coding_s);
    for (std::size_t r = 0; r < times.size(); ++r) {
      sim_.event(result_, "mean", "communication", static_cast<int>(r), begins[r], times[r], k);
    }
    if (blocking) {
      for (double& time : times) time += 5 * differences;
      now_ = times;
      return;
    }
    for (std::size_t r = 0; r < times.size(); ++r) {
      free_[r] = times[r];
      beside_[r].add(longer.compute_s, 1);
    }
    pending_.push_back({std::move(times), one.wait, k + one.later});
  }

  // What a worker computes from the moment that something is started to that where it is waited for.
  double compute_between(const Exchange& one) const {
    const auto& cost = sim_.cost;
    const double step = cost.forward + cost.backward + cost.optimizer + cost.other;
    const auto until = [&](Moment at) {
      const double computed = at == Moment::before_forward ? 0 : cost.forward + cost.backward;
      return at == Moment::after_step ? computed + cost.optimizer : computed;
    };
    return one.later * step + until(one.wait) - until(one.start);
  }

  void account(double begin, double end, double alone, double latency, double coding) {
    if (!counts_) return;
    auto& parts = result_.exchange_s;
    parts.latency += latency;
    parts.coding += coding;
    parts.bandwidth += std::max(0.0, alone - latency - coding);
    parts.waiting += std::max(0.0, end - begin - alone);
  }

  // ---- Messages to peers ----

  struct Sent {
    int from, to;
    double bytes, begin;
  };

  void start_sends(Moment at, std::int64_t k) {
    std::vector<Sent> sent;
    Moment waited = at;
    for (std::size_t r = 0; r < courses_.size(); ++r) {
      for (const auto& one : courses_[r]) {
        if (one.what != What::send || one.start != at) continue;
        const double ready = std::max(now_[r], now_[static_cast<std::size_t>(one.peer)]);
        sent.push_back({static_cast<int>(r), one.peer, sim_.bytes_of(one.of), ready});
        waited = one.wait;
      }
    }
    if (sent.empty()) return;
    std::ranges::stable_sort(sent, {}, &Sent::begin);
    const auto ends = sim_.network.shared() ? by_flows(sent) : in_turn(sent);
    result_.tier = std::max(result_.tier, sim_.network.shared() ? Tier::flows : Tier::max_plus);
    Pending pending{now_, waited, k};
    const double turn = waited != at ? sim_.profile.turn_s : 0;
    for (std::size_t i = 0; i < sent.size(); ++i) deliver(sent[i], ends[i] + turn, pending.ends, k);
    pending_.push_back(std::move(pending));
  }

  std::vector<double> in_turn(const std::vector<Sent>& sent) {
    std::vector<double> ends;
    for (const auto& one : sent) ends.push_back(nics_.send(one.from, one.to, one.bytes, one.begin));
    return ends;
  }

  // Where messages meet inside the network.
  std::vector<double> by_flows(const std::vector<Sent>& sent) const {
    Flows flows(sim_.network);
    std::vector<double> ends(sent.size());
    std::vector<int> ended;
    std::size_t next = 0, done = 0;
    while (done < sent.size()) {
      if (next < sent.size() && sent[next].begin <= flows.next()) {
        flows.start(sent[next].begin, sent[next].from, sent[next].to, sent[next].bytes, static_cast<int>(next));
        ++next;
        continue;
      }
      ended.clear();
      flows.step(ended);
      for (int id : ended) ends[static_cast<std::size_t>(id)] = flows.now();
      done += ended.size();
    }
    return ends;
  }

  void deliver(const Sent& one, double end, std::vector<double>& ends, std::int64_t k) {
    const auto from = static_cast<std::size_t>(one.from), to = static_cast<std::size_t>(one.to);
    ends[from] = std::max(ends[from], end);
    ends[to] = std::max(ends[to], end);
    const double alone = sim_.network.message(one.from, one.to, one.bytes);
    beside_[to].add(sim_.theft * (alone + sim_.handover_s), sim_.theft);
    if (!sim_.network.shares_memory()) beside_[from].add(sim_.theft * alone, sim_.theft);
    sim_.clock.traffic().add(sim_.network, one.from, one.to, static_cast<std::uint64_t>(one.bytes));
    if (sim_.job.observe) {
      sim_.job.observe({one.from, one.to, 0, static_cast<std::uint64_t>(one.bytes), one.begin, end});
    }
    sim_.event(result_, "message", "communication", one.to, one.begin, end, k,
               {{"bytes", one.bytes}, {"from", static_cast<double>(one.from)}});
    if (!counts_) return;
    result_.workers[from].bytes_sent += static_cast<std::uint64_t>(one.bytes);
    if (one.to == 0) {
      account(one.begin, end, alone, sim_.network.latency(one.from, one.to), 0);
    }
  }

  void wait(Moment at, std::int64_t k) {
    std::erase_if(pending_, [&](const Pending& one) {
      if (one.wait != at || one.due > k) return false;
      for (std::size_t r = 0; r < now_.size(); ++r) now_[r] = std::max(now_[r], one.ends[r]);
      return true;
    });
    if (pending_.empty() && !sim_.in_line) std::ranges::fill(beside_, Beside{});  // it was done while they waited
  }

  // ---- Buckets ----

  void backward_in_buckets(std::int64_t k) {
    if (!buckets_) buckets_.emplace(sim_);
    const std::vector<double> before = now_;
    auto told = buckets_->backward(now_, factor_);
    for (std::size_t r = 0; r < now_.size(); ++r) {
      const double own = now_[r] - before[r] - told.exposed[r];
      sim_.event(result_, "backward", "compute", static_cast<int>(r), before[r], now_[r], k,
                 {{"exposed_ms", 1e3 * told.exposed[r]}});
      expose(r, told.exposed[r], told.communication);
      if (!counts_) continue;
      result_.workers[r].compute_s += own;
      if (r == 0) result_.breakdown_s.backward += own;
    }
    buckets_->trace(result_, k);
    if (!counts_) return;
    auto& parts = result_.exchange_s;
    parts.latency += told.parts.latency;
    parts.bandwidth += told.parts.bandwidth;
    parts.queueing += told.parts.queueing;
    parts.waiting += told.parts.waiting;
    parts.coding += told.parts.coding;
  }

  Simulation& sim_;
  Simulated result_;
  std::vector<double> now_;     // by rank: its training thread
  std::vector<double> free_;    // by rank: its channel
  std::vector<Beside> beside_;  // by rank: exchanges in the background
  std::vector<double> factor_;  // by rank, of this step
  std::vector<sync::ExchangePlan> courses_;
  std::vector<Pending> pending_;
  std::optional<BucketsInTime> buckets_;
  Nics nics_;
  bool counts_ = false, in_backward_ = false;
};

}  // namespace

Simulated simulate_steps(Simulation& simulation) { return Steps(simulation).run(); }

}  // namespace trireme::cluster

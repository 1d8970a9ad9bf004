// Workers at their own pace: events in the order of time.
#include <algorithm>
#include <limits>

#include "trireme/cluster/sim/job/async_sim.h"
#include "trireme/cluster/sim/job/servers_in_time.h"
#include "trireme/sync/exchange/request_header.h"

namespace trireme::cluster {
namespace {

using sync::Exchange;
using sync::Moment;
using What = Exchange::What;

// ---- With a parameter server ----

class WithServers : public AsyncSim {
 public:
  explicit WithServers(Simulation& simulation)
      : AsyncSim(simulation, exchange_of(simulation).clock.async),
        code_(simulation.coding.message()),
        coded_(!simulation.coding.none()),
        servers_(simulation, exchange_of(simulation).clock, *this),
        states_(workers_.size()) {}

 private:
  struct State {
    bool pulled = true, waiting = false;
    double since_s = 0;
  };

  static Exchange exchange_of(const Simulation& simulation) {
    for (const auto& one : simulation.job.strategy.exchange_plan(simulation.at(0, 0))) {
      if (one.what == What::push_pull) return one;
    }
    return {};
  }
  State& state(int worker) { return states_[static_cast<std::size_t>(worker)]; }

  void begin_step(int worker, double now) override {
    if (state(worker).pulled) return go(worker, now);
    state(worker).waiting = true;
    state(worker).since_s = now;
  }

  void go(int worker, double now) {
    state(worker).waiting = false;
    access(Access::What::read, worker, now);
    const double read = now + passes(worker, Moment::before_forward, false);
    expose(worker, read - now);
    const double laid_out =
        sim_.laid_out(workers_[static_cast<std::size_t>(worker)].exchange_plan) + sim_.profile.resumed_s;
    const double computed = compute(worker, read) + read_on(worker) + laid_out;
    if (worker == 0 && counts(worker)) result_.breakdown_s.other += laid_out;
    // Gradients are encoded on the training thread.
    const double ready = computed + passes(worker, Moment::after_backward, false) + (coded_ ? code_.encode_s : 0);
    expose(worker, ready - computed);
    events_.put(ready, [this, worker](double then) { push(worker, then); });
  }

  // What pulls with pauses four times as long take from the worker's compute, one of five seconds; and what they move.
  double read_on(int worker) {
    const auto& exchange_plan = workers_[static_cast<std::size_t>(worker)].exchange_plan;
    if (std::ranges::none_of(exchange_plan, [](const auto& one) { return one.what == What::read_on; })) return 0;
    const double taken = 0.2 * sim_.cost.forward + 0.2 * sim_.cost.backward;
    const double one = servers_.pull_alone(worker);
    if (one > 0 && counts(worker)) {
      result_.workers[static_cast<std::size_t>(worker)].bytes_sent +=
          static_cast<std::uint64_t>(taken / one) * static_cast<std::uint64_t>(code_.bytes);
    }
    return sim_.theft * taken;
  }

  void push(int worker, double now) {
    state(worker).pulled = false;
    const auto pushed = servers_.push(worker, now);
    if (counts(worker)) {
      stale(static_cast<std::int64_t>(pushed.staleness));
      result_.workers[static_cast<std::size_t>(worker)].bytes_sent += static_cast<std::uint64_t>(2 * code_.bytes);
      if (worker == 0) {
        result_.exchange_s.latency += pushed.latency_s;
        result_.exchange_s.bandwidth += pushed.bandwidth_s;
        result_.exchange_s.coding += pushed.coding_s + (coded_ ? code_.encode_s + code_.decode_s : 0);
      }
    }
    access(Access::What::apply, worker, pushed.arrived_s);
    send_answers(pushed.answers);
    end_step(worker, now);
  }

  // Each when it leaves: messages come in the order of time.
  void send_answers(const std::vector<ServersInTime::Answer>& answers) {
    for (const auto& one : answers) {
      events_.put(one.at_s, [this, one](double) {
        const double there = servers_.deliver(one);
        if (there < 0) return;
        const double decoded = there + (coded_ ? code_.decode_s + sim_.touch_s : 0);
        events_.put(decoded, [this, who = one.worker](double then) { answered(who, then); });
      });
    }
  }

  void answered(int worker, double now) {
    state(worker).pulled = true;
    if (!state(worker).waiting) return;
    expose(worker, now - state(worker).since_s);
    if (worker == 0 && counts(worker)) {
      result_.exchange_s.waiting += std::max(0.0, now - state(worker).since_s - servers_.pull_alone(worker));
    }
    go(worker, now);
  }

  const Coding::Message code_;
  const bool coded_;
  ServersInTime servers_;
  std::vector<State> states_;
};

// ---- In pairs ----

class InPairs : public AsyncSim {
 public:
  explicit InPairs(Simulation& simulation)
      : AsyncSim(simulation, true), nics_(simulation.network), states_(workers_.size()) {}

 private:
  static constexpr double kHeader = sizeof(sync::RequestHeader);  // bytes that announce a request
  static constexpr double kSocketBytes = 4 << 20;                 // what a socket takes while its owner computes

  struct State {
    double busy_s = 0;          // its answering thread, until
    std::int64_t averaged = 0;  // since it read its weights
  };
  State& state(int worker) { return states_[static_cast<std::size_t>(worker)]; }

  void begin_step(int worker, double now) override {
    const auto& exchange_plan = workers_[static_cast<std::size_t>(worker)].exchange_plan;
    const auto asks = std::ranges::find(exchange_plan, What::ask, &Exchange::what);
    access(Access::What::read, worker, now);
    if (asks == exchange_plan.end()) return alone(worker, now);
    const int peer = asks->peer;
    const bool at_once = sim_.network.shares_memory() || sim_.model_bytes <= kSocketBytes;
    const double computed = compute(worker, now);
    events_.put(at_once ? now : computed,
                [this, worker, peer, computed](double then) { ask(worker, peer, then, computed); });
  }

  void ask(int worker, int peer, double now, double computed) {
    const double bytes = sim_.model_bytes;
    const double arrived = nics_.send(worker, peer, bytes + kHeader, now);
    const double merge_s = 4 * sim_.touch_s;
    const double begin = std::max(arrived, state(peer).busy_s);
    state(peer).busy_s = begin + merge_s;
    disturb(peer, now, sim_.network.message(worker, peer, bytes) + sim_.handover_s, sim_.theft);
    events_.put(begin, [=, this](double then) {
      disturb(peer, then, (sim_.spare ? 1 : 2) * merge_s, sim_.spare ? sim_.theft : kHalf);
    });
    if (sim_.job.observe) {
      const auto size = static_cast<std::uint64_t>(bytes);
      sim_.job.observe({worker, peer, 0, static_cast<std::uint64_t>(kHeader), now, arrived});
      sim_.job.observe({worker, peer, 0, size, now, arrived});
      sim_.job.observe({peer, worker, 0, size, begin + merge_s, begin + merge_s});
    }
    sim_.clock.traffic().add(sim_.network, worker, peer, static_cast<std::uint64_t>(bytes + kHeader));
    sim_.clock.traffic().add(sim_.network, peer, worker, static_cast<std::uint64_t>(bytes));
    if (counts(worker)) {
      result_.workers[static_cast<std::size_t>(worker)].bytes_sent += static_cast<std::uint64_t>(bytes + kHeader);
      result_.workers[static_cast<std::size_t>(peer)].bytes_sent += static_cast<std::uint64_t>(bytes);
    }
    events_.put(begin, [this, worker, peer](double then) {
      ++state(peer).averaged;
      access(Access::What::average, worker, then, peer);
    });
    // The answer takes the request's place, and so is received once backward has ended.
    events_.put(std::max(computed, begin + merge_s), [this, worker, peer, computed](double then) {
      const double end = nics_.send(peer, worker, sim_.model_bytes, then);
      expose(worker, end - computed);
      if (worker == 0 && counts(worker)) {
        const double alone = sim_.network.message(peer, worker, sim_.model_bytes);
        const double latency = std::min(alone, sim_.network.latency(peer, worker));
        result_.exchange_s.latency += latency;
        result_.exchange_s.bandwidth += alone - latency;
        result_.exchange_s.waiting += std::max(0.0, end - computed - alone);
      }
      events_.put(end, [this, worker](double at) { finish(worker, at, 1); });
    });
  }

  // A worker that answers, or has nobody to ask.
  void alone(int worker, double now) {
    state(worker).averaged = 0;
    const double read = now + passes(worker, Moment::before_forward, false);
    expose(worker, read - now);
    const double computed = compute(worker, read);
    events_.put(computed, [this, worker](double then) { finish(worker, then, -1); });
  }

  void finish(int worker, double now, std::int64_t stale_by) {
    const double stepped = optimize(worker, now);
    const double end = stepped + passes(worker, Moment::after_step, false);
    expose(worker, end - stepped);
    events_.put(end, [this, worker, stale_by](double then) {
      access(Access::What::apply, worker, then);
      if (counts(worker)) stale(stale_by < 0 ? state(worker).averaged : stale_by);
      end_step(worker, then);
    });
  }

  Nics nics_;
  std::vector<State> states_;
};

// ---- On one memory ----

class OnOneMemory : public AsyncSim {
 public:
  explicit OnOneMemory(Simulation& simulation) : AsyncSim(simulation, true) {}

 private:
  void begin_step(int worker, double now) override {
    access(Access::What::read, worker, now);
    const double reread = workers_.size() > 1 ? sim_.profile.resumed_s : 0;  // what others have just written
    if (worker == 0 && counts(worker)) result_.breakdown_s.other += reread;
    const double end = optimize(worker, compute(worker, now) + reread);
    events_.put(end, [this, worker, seen = updates_](double then) {
      access(Access::What::apply, worker, then);
      if (counts(worker)) stale(updates_ - seen);
      ++updates_;
      end_step(worker, then);
    });
  }
  std::int64_t updates_ = 0;
};

}  // namespace

Simulated simulate_events(Simulation& simulation) {
  const auto exchange_plan = simulation.job.strategy.exchange_plan(simulation.at(0, 0));
  const auto has = [&](What what) {
    return std::ranges::any_of(exchange_plan, [&](const auto& one) { return one.what == what; });
  };
  if (has(What::push_pull) && simulation.job.coarse) {
    return simulate_servers(simulation, std::ranges::find(exchange_plan, What::push_pull, &Exchange::what)->clock);
  }
  if (has(What::push_pull)) return WithServers(simulation).run();
  if (has(What::shared)) return OnOneMemory(simulation).run();
  return InPairs(simulation).run();
}

}  // namespace trireme::cluster

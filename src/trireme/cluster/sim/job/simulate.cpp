#include "trireme/cluster/sim/job/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::cluster {
namespace {

using What = sync::Exchange::What;

const Profile& profile_of(const Job& job) {
  if (!job.profile) throw ConfigError("a simulation needs a profile");
  if (job.profile->gradients.empty()) {
    throw ConfigError(
        fmt::format("{}: it has no gradients", job.profile->file.empty() ? "profile" : job.profile->file));
  }
  return *job.profile;
}

int workers_of(const Network& network, const Job& job) {
  const int all = network.ranks();
  if (job.workers < 0 || job.workers > all) {
    throw ConfigError(fmt::format("{} workers: {} has {}", job.workers, network.cluster().file, all));
  }
  return job.workers == 0 ? all : job.workers;
}

StepCost cost_of(const Profile& profile) {
  StepCost cost{profile.forward_s.p50, profile.backward_s.p50, profile.optimizer_s.p50, 0};
  cost.other = std::max(0.0, profile.step_s.p50 - cost.forward - cost.backward - cost.optimizer);
  return cost;
}

bool has_spare_core(const Network& network, const Job& job) {
  const auto& node = network.node(0);
  return sync::has_spare_core(std::min(network.ranks(), node.workers), std::max(job.profile->threads, 1), node.cores);
}

bool in_line_of(const Network& network, const Job& job) {
  if (job.turn != Job::Turn::as_train) return job.turn == Job::Turn::in_line;
  return sync::usual_turn(network.shares_memory(), has_spare_core(network, job)) == sync::Turn::in_line;
}

// How many steps lie between two means, where there are any; 1 elsewhere. Looked at long after any warm-up.
std::int64_t period_of(const Job& job, int ranks) {
  constexpr std::int64_t kFrom = 1 << 20, kLongest = 1 << 16;
  std::int64_t last = -1;
  for (std::int64_t step = kFrom; step < kFrom + 2 * kLongest; ++step) {
    const auto exchange_plan = job.strategy.exchange_plan({0, ranks, step, 1, 1, job.seed});
    if (std::ranges::any_of(exchange_plan, [](const auto& one) { return one.what == What::mean; })) {
      if (last >= 0) return step - last;
      last = step;
    } else if (!exchange_plan.empty() || step > kFrom + kLongest) {
      if (last < 0) break;
    }
  }
  return 1;
}

// A whole number of periods, of which the first half may be another phase.
std::int64_t rounded_up(std::int64_t steps, std::int64_t period) {
  const std::int64_t whole = period == 1 ? 1 : 2 * period;
  return (steps + whole - 1) / whole * whole;
}

std::int64_t warm_of(const Job& job, int ranks) {
  std::int64_t warm = 0;
  for (const auto& one : job.strategy.exchange_plan({0, ranks, 0, 1, 1, job.seed})) {
    warm = std::max<std::int64_t>(warm, one.later);
  }
  return warm;
}

bool at_own_pace(const sync::ExchangePlan& exchange_plan) {
  return std::ranges::any_of(exchange_plan, [](const auto& one) {
    return one.what == What::push_pull || one.what == What::ask || one.what == What::shared;
  });
}

double seconds_of(const sync::Exchange& pass, const Simulation& simulation) {
  return pass.touched * simulation.touch_s + pass.copied * simulation.copy_s;
}

bool saves_memory(const mesh::Saving& saving) {
  return saving.shard != mesh::Saving::Shard::none || saving.recompute_every > 0;
}

void check(const Network& network, const Job& job) {
  if (!job.strategy.kind) throw ConfigError("a simulation needs a strategy");
  if (job.steps < 1) throw ConfigError(fmt::format("{} steps: at least one is simulated", job.steps));
  if (job.lanes < 1) throw ConfigError(fmt::format("{} lanes: there is at least one", job.lanes));
  if (job.servers < 0) throw ConfigError(fmt::format("{} servers: 0 for one with each worker", job.servers));
  const compress::Rules rules(job.compress.empty() ? "none" : job.compress, job.compress_rules);
  if (!rules.none() && job.strategy.kind->compresses == sync::StrategyKind::Compresses::nothing) {
    throw ConfigError(fmt::format("--compress: nothing that {} sends may be compressed", job.strategy.kind->name));
  }
  if (job.hybrid && (!job.strategy.traits().in_backward || !rules.none() || job.mesh.pipe * job.mesh.tensor > 1)) {
    throw ConfigError(
        "--hybrid alexnet goes with --strategy allreduce, without --compress and a mesh of stages or parts");
  }
  if (job.strategy.traits().shares_memory && !network.shares_memory()) {
    throw ConfigError(
        fmt::format("{} needs workers that share memory: a cluster of one node", job.strategy.kind->name));
  }
}

}  // namespace

Simulation::Simulation(const Network& whole, const Job& of)
    : all(whole),
      job(of),
      profile(profile_of(of)),
      ranks(workers_of(whole, of)),
      network(whole.first(ranks)),
      cost(cost_of(profile)),
      coding(profile, of.compress, of.compress_rules, ranks, of.seed),
      clock(network, of.algorithm, of.observe, of.coarse),
      pace(network, profile, of.strategy.learners(), of.seed, of.noise),
      model_bytes(static_cast<double>(profile.gradient_bytes())),
      touch_s(model_bytes * (profile.pass_s_per_byte > 0 ? profile.pass_s_per_byte : profile.pack_s_per_byte / 2)),
      copy_s(model_bytes * profile.pack_s_per_byte),
      downloads_s(profile.device.starts_with("cpu") ? 0 : 2 * model_bytes * profile.copy_s_per_byte),
      spare(has_spare_core(network, of)),
      in_line(in_line_of(network, of)),
      theft(in_line ? 1 : profile.slowdown),
      handover_s(profile.request_s / 2),  // a request to a server wakes four threads one after the other, this two
      period(period_of(of, ranks)),
      steps(rounded_up(of.steps, period)),
      warm(warm_of(of, ranks)) {}

sync::ExchangePlanAt Simulation::at(int rank, std::int64_t step) const {
  return {.rank = rank,
          .ranks = ranks,
          .step = step >= warm ? step - warm : step,
          .steps_per_epoch = std::max<std::int64_t>(
              1, static_cast<std::int64_t>(profile.samples / std::max(1, profile.batch * ranks))),
          .total_steps = steps,
          .seed = job.seed};
}

double Simulation::passes(const sync::ExchangePlan& exchange_plan, sync::Moment moment, bool late) const {
  double seconds = late ? downloads_s : 0;
  for (const auto& one : exchange_plan) {
    const bool of_loop = one.of == sync::Exchange::Of::gradient;
    if (one.what == What::pass && !of_loop && one.start == moment && one.late == late) {
      seconds += seconds_of(one, *this);
    }
  }
  return seconds;
}

double Simulation::laid_out(const sync::ExchangePlan& exchange_plan) const {
  if (job.own) return 0;
  double seconds = 0;
  for (const auto& one : exchange_plan) {
    if (one.what == What::pass && one.of == sync::Exchange::Of::gradient) {
      seconds += seconds_of(one, *this);
    }
  }
  return seconds;
}

// While bytes travel, compute of one second takes 1 / (1 − θ). Where no core is spare the two compute by halves, and
// each collective waits for its turn.
Simulation::Slowdown Simulation::slowdown(const Legs& legs, double compute_s) {
  Slowdown longer;
  double left = compute_s;
  const auto travels = [&](double seconds) {
    longer.compute_s += taken(seconds, theft, left);
    left = std::max(0.0, left - (1 - theft) * seconds);
  };
  const auto computes = [&](double seconds) {
    if (spare) return travels(seconds);
    const double both = std::min(left, seconds);
    longer.compute_s += both;
    longer.exchange_s += both;
    left -= both;
  };
  travels(handover_s);
  for (const Leg& leg : legs.legs) {
    computes(leg.before_s);
    if (left > 0) longer.exchange_s += profile.turn_s;
    travels(clock.alone(leg));
  }
  computes(legs.after_s);
  return longer;
}

Legs Simulation::legs_of(sync::Exchange::Of of) const {
  if (of == sync::Exchange::Of::number) return {{{Collective::all_reduce, 1, sizeof(double), 0}}, 0, 0};
  return coding.none() ? plain_legs(profile.gradient_elements()) : coding.whole();
}

double Simulation::bytes_of(sync::Exchange::Of of) const {
  return of == sync::Exchange::Of::number ? sizeof(double) : model_bytes;
}

void Simulation::event(Simulated& result, const char* name, const char* lane, int rank, double begin, double end,
                       std::int64_t step, std::vector<std::pair<std::string, double>> args) const {
  if (!job.trace) return;
  args.emplace_back("step", static_cast<double>(step + 1));
  result.trace.push_back({name, lane, rank, lane, begin, end - begin, std::move(args)});
}

Simulated simulate(const Cluster& cluster, const Job& job) { return simulate(Network(cluster), job); }

Simulated simulate(const Network& network, const Job& job) {
  check(network, job);
  Simulation simulation(network, job);
  Simulated result;
  if (job.hybrid) {
    result = simulate_hybrid(simulation);
  } else if (job.mesh.pipe > 1 || job.mesh.tensor > 1 || saves_memory(job.saving)) {
    result = simulate_mesh(simulation);
  } else if (at_own_pace(job.strategy.exchange_plan(simulation.at(0, 0)))) {
    result = simulate_events(simulation);
  } else {
    result = simulate_steps(simulation);
  }
  conclude(simulation, result);
  return result;
}

}  // namespace trireme::cluster

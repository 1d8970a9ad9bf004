#include "trireme/cli/bench/predict/training_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/launch/launch.h"

namespace trireme::bench {
namespace {

constexpr std::chrono::seconds kLongestChild{600};

// Runs `trireme ARGUMENTS`, and fails as it does.
void run_trireme(Argv arguments) {
  arguments.insert(arguments.begin(), launch::own_program());
  Output output;
  if (start_child(arguments, output.fd()).finish(kLongestChild) != 0) {
    throw Error(fmt::format("{}: {}", fmt::join(arguments, " "), output.first_line()));
  }
}

// The flags that put a job in a place.
void put(Argv& arguments, const Place& place, int workers) {
  if (!place.emulated()) return;
  arguments.insert(arguments.end(), {"--hosts", fmt::format("ns:{}", workers), "--bandwidth", place.bandwidth});
}

// `trireme run` in the place, of `trireme ARGUMENTS`.
Argv run_there(const Place& place, int workers, const Argv& arguments) {
  Argv there{"run", "-n", std::to_string(workers)};
  put(there, place, workers);
  there.insert(there.end(), {"--", launch::own_program()});
  there.insert(there.end(), arguments.begin(), arguments.end());
  return there;
}

// Whether two workers go through many steps without exchanging anything.
bool silent(const sync::Choice& strategy) {
  constexpr std::int64_t kSteps = 100;
  sync::ExchangePlanAt at{.ranks = 2, .steps_per_epoch = kSteps, .total_steps = 100 * kSteps};
  for (at.rank = 0; at.rank < at.ranks; ++at.rank) {
    for (at.step = 0; at.step < kSteps; ++at.step) {
      if (!strategy.exchange_plan(at).empty()) return false;
    }
  }
  return true;
}

}  // namespace

cluster::Cluster measured_cluster(const Place& place, int workers) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/cluster.toml";
  const Argv tune{"tune", "-n", std::to_string(workers), "--dry-run", "--cluster", path};
  run_trireme(place.emulated() ? run_there(place, workers, tune) : tune);
  return cluster::load_cluster(path);
}

std::vector<Way> ways_of(const std::vector<std::string>& strategies, const std::vector<std::string>& codecs,
                         const Place& place) {
  std::vector<Way> ways;
  for (const auto& kind : sync::strategies()) {
    if (!strategies.empty() && std::ranges::find(strategies, kind.name) == strategies.end()) continue;
    const bool threads = kind.traits.shares_memory;
    if (threads && place.emulated()) continue;
    // The number of learners that is best is found while running: no step is like the next until then.
    std::string name(kind.name);
    if (sync::Choice::parse(name).traits().learners == 0) name += ":learners=1";
    for (const auto& codec : codecs) {
      if (codec != "none" && kind.compresses == sync::StrategyKind::Compresses::nothing) continue;
      ways.push_back({name, codec, threads ? "threads" : "processes", kind.needs_servers});
      if (silent(sync::Choice::parse(name))) break;
    }
  }
  return ways;
}

Way without_exchange() { return {"average-at-end", "none"}; }

TrainingRuns::TrainingRuns(const Place& place, int workers, const std::string& model)
    : place_(place), workers_(workers) {
  const auto colon = model.find(':');
  model_ = {"--model", model.substr(0, colon), "--batch", colon == model.npos ? "64" : model.substr(colon + 1)};
}

std::string TrainingRuns::next_folder() { return fmt::format("{}/run-{}", folder_.path(), runs_++); }

cluster::Profile TrainingRuns::profile() {
  const std::string path = folder_.path() + "/profile.json";
  Argv arguments{"profile", "--workers", std::to_string(workers_), "--quiet", "-o", path};
  arguments.insert(arguments.end(), model_.begin(), model_.end());
  run_trireme(arguments);
  auto profile = cluster::load_profile(path);
  if (!place_.emulated()) return profile;
  // What exchanges take from compute depends on what they go over.
  arguments.insert(arguments.end(), {"--threads", std::to_string(profile.threads)});
  run_trireme(run_there(place_, workers_, arguments));
  const auto there = cluster::load_profile(path);
  profile.slowdown = there.slowdown;
  profile.turn_s = there.turn_s;
  profile.link_request_s = there.link_request_s;
  profile.resumed_s = there.resumed_s;
  return profile;
}

Argv TrainingRuns::command(const Way& way, std::int64_t steps, const std::string& out) const {
  Argv command{launch::own_program(),
               "train",
               "--workers",
               std::to_string(workers_),
               "--steps",
               std::to_string(steps),
               "--strategy",
               way.strategy,
               "--compress",
               way.codec,
               "--launch",
               way.launch,
               "--out",
               out,
               "--quiet"};
  // Only the time counts: so slow a rate that nothing diverges.
  command.insert(command.end(), {"--lr", "0.001", "--on-nan", "skip"});
  command.insert(command.end(), model_.begin(), model_.end());
  put(command, place_, workers_);
  return command;
}

std::unique_ptr<PausedRun> TrainingRuns::start(const Way& way, std::int64_t steps) {
  const std::string out = next_folder();
  Argv train = command(way, kSettled + steps, out);
  // It stands still most of the time, and nobody is dead.
  train.insert(train.end(), {"--log-every", "1", "--timeout", "3600", "--epochs", "100000"});
  if (way.servers) train.insert(train.end(), {"--lease", "3600"});
  return std::make_unique<PausedRun>(train, out, kSettled);
}

}  // namespace trireme::bench

#include "trireme/cli/bench/predict_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/cli/bench/crew.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/session.h"
#include "trireme/net/launch/launch.h"
#include "trireme/plan/profile.h"
#include "trireme/plan/simulate.h"
#include "trireme/sync/strategies.h"

namespace trireme::bench {
namespace {

constexpr std::chrono::seconds kLongest{600};  // of one child

// Runs `trireme ARGUMENTS`, and fails as it does.
void run_trireme(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), net::own_program());
  Output output;
  Child child(arguments, output.fd());
  if (child.finish(kLongest) != 0) {
    throw Error(
        fmt::format("trireme {}: {}", fmt::join(arguments.begin() + 1, arguments.end(), " "), output.first_line()));
  }
}

// The flags that put a job in a place.
void put(std::vector<std::string>& arguments, const Place& place, int workers) {
  if (place.bandwidth.empty()) return;
  arguments.insert(arguments.end(), {"--hosts", fmt::format("ns:{}", workers), "--bandwidth", place.bandwidth});
}

// One way to train a model.
struct Way {
  std::string strategy, codec;
  const sync::Kind* kind = nullptr;
  plan::Simulated simulated;
  std::vector<double> measured_s;
};

std::vector<Way> ways_of(const TrainingQuestion& question, const Place& place) {
  std::vector<Way> ways;
  for (const auto& kind : sync::strategies()) {
    const auto& wanted = question.strategies;
    if (!wanted.empty() && std::ranges::find(wanted, kind.name) == wanted.end()) continue;
    if (kind.name == "hogwild" && !place.bandwidth.empty()) continue;  // it is for threads of one process
    // The number of learners that is best is found while running: no step is like the next until then.
    const std::string name = kind.name == "sma" ? "sma:learners=1" : std::string(kind.name);
    for (const auto& codec : question.codecs) {
      if (codec != "none" && kind.compresses == sync::Kind::Compresses::nothing) continue;
      ways.push_back({name, codec, &kind, {}, {}});
    }
  }
  return ways;
}

class Trial {
 public:
  Trial(const TrainingQuestion& question, const Place& place, const plan::Cluster& cluster, const std::string& model)
      : question_(question), place_(place), cluster_(cluster), group_(fmt::format("{}, {}", place.name, model)) {
    const auto colon = model.find(':');
    model_ = {"--model", model.substr(0, colon), "--batch", colon == model.npos ? "64" : model.substr(colon + 1)};
  }

  void judge(TrainingAnswer& answer) {
    auto ways = ways_of(question_, place_);
    for (int round = 0; round < question_.rounds; ++round) {
      const auto profile = profiled();
      for (auto& way : ways) {
        show_progress(fmt::format("{}: {} {}, round {}", group_, way.strategy, way.codec, round + 1));
        const double predicted = predict(profile, way);
        predicted_[&way].push_back(predicted);
        way.measured_s.push_back(train(way, predicted));
      }
    }
    for (auto& way : ways) {
      answer.steps.push_back(
          {group_, fmt::format("{} {}", way.strategy, way.codec), median(predicted_[&way]), way.measured_s});
    }
    answer.picks.push_back(picked(ways));
  }

 private:
  // Afresh in each round: the machine has moods.
  plan::Profile profiled() {
    const std::string path = folder_.path() + "/profile.json";
    std::vector<std::string> arguments{"profile", "--workers", std::to_string(question_.workers), "-o", path};
    arguments.insert(arguments.end(), model_.begin(), model_.end());
    show_progress(fmt::format("{}: profile", group_));
    run_trireme(arguments);
    return plan::load_profile(path);
  }

  double predict(const plan::Profile& profile, Way& way) const {
    plan::Job job;
    job.profile = &profile;
    job.strategy = sync::Choice::parse(way.strategy);
    job.compress = way.codec;
    job.workers = question_.workers;
    job.steps = 64;
    way.simulated = plan::simulate(cluster_, job);
    return way.simulated.step_s;
  }

  double train(const Way& way, double predicted) {
    const auto steps = static_cast<int>(std::clamp(question_.seconds / predicted, 30.0, 400.0));
    const std::string out = fmt::format("{}/run-{}", folder_.path(), runs_++);
    std::vector<std::string> arguments{"train",
                                       "--workers",
                                       std::to_string(question_.workers),
                                       "--steps",
                                       std::to_string(steps),
                                       "--strategy",
                                       way.strategy,
                                       "--compress",
                                       way.codec,
                                       "--out",
                                       out,
                                       "--quiet"};
    // Only the time counts: so slow a rate that nothing diverges.
    arguments.insert(arguments.end(), {"--lr", "0.001", "--on-nan", "skip"});
    if (way.kind->name == "hogwild") arguments.insert(arguments.end(), {"--launch", "threads"});
    arguments.insert(arguments.end(), model_.begin(), model_.end());
    put(arguments, place_, question_.workers);
    run_trireme(arguments);
    std::ifstream file(out + "/run.json");
    const auto run = nlohmann::json::parse(file);
    return run.at("summary").at("measured").at("step_ms").get<double>() * 1e-3;
  }

  Picked picked(const std::vector<Way>& ways) {
    std::vector<double> predicted, measured;
    for (const auto& way : ways) {
      predicted.push_back(median(predicted_[&way]));
      measured.push_back(median(way.measured_s));
    }
    const auto pick = static_cast<std::size_t>(std::ranges::min_element(predicted) - predicted.begin());
    const auto best = static_cast<std::size_t>(std::ranges::min_element(measured) - measured.begin());
    auto text = [&](std::size_t i) { return fmt::format("{} {}", ways[i].strategy, ways[i].codec); };
    return {group_, text(pick), text(best), measured[pick], measured[best], kendall(predicted, measured)};
  }

  const TrainingQuestion& question_;
  const Place& place_;
  const plan::Cluster& cluster_;
  const std::string group_;
  std::vector<std::string> model_;
  TemporaryFolder folder_;
  std::map<const Way*, std::vector<double>> predicted_;  // by round
  int runs_ = 0;
};

}  // namespace

plan::Cluster measured_cluster(const Place& place, int workers) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/cluster.toml";
  std::vector<std::string> arguments;
  if (!place.bandwidth.empty()) {
    arguments = {"run", "-n", std::to_string(workers)};
    put(arguments, place, workers);
    arguments.insert(arguments.end(), {"--", net::own_program()});
  }
  arguments.insert(arguments.end(), {"tune", "-n", std::to_string(workers), "--dry-run", "--cluster", path});
  show_progress(fmt::format("{}: tune", place.name));
  run_trireme(arguments);
  return plan::load_cluster(path);
}

TrainingAnswer judge_training(const TrainingQuestion& question, const Place& place) {
  TrainingAnswer answer;
  for (const auto& model : question.models) {
    const auto cluster = measured_cluster(place, question.workers);
    Trial(question, place, cluster, model).judge(answer);
  }
  show_progress("");
  return answer;
}

}  // namespace trireme::bench

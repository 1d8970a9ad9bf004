#include "trireme/cli/bench/predict_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "trireme/base/error.h"
#include "trireme/cli/bench/crew.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/session.h"
#include "trireme/cli/bench/turns.h"
#include "trireme/net/launch/launch.h"
#include "trireme/plan/profile.h"
#include "trireme/plan/simulate.h"
#include "trireme/sync/strategies.h"

namespace trireme::bench {
namespace {

constexpr std::chrono::seconds kLongestChild{600};  // of one child

// Fails as the command does.
void run_to_end(const Argv& command) {
  Output output;
  Child child(command, output.fd());
  if (child.finish(kLongestChild) != 0) {
    throw Error(fmt::format("{}: {}", fmt::join(command, " "), output.first_line()));
  }
}

// Runs `trireme ARGUMENTS`.
void run_trireme(Argv arguments) {
  arguments.insert(arguments.begin(), net::own_program());
  run_to_end(arguments);
}

// The flags that put a job in a place.
void put(std::vector<std::string>& arguments, const Place& place, int workers) {
  if (!place.emulated()) return;
  arguments.insert(arguments.end(), {"--hosts", fmt::format("ns:{}", workers), "--bandwidth", place.bandwidth});
}

// One way to train a model. Seconds of a step over those of one without exchange, right before and after; by round.
struct Way {
  std::string strategy, codec;
  const sync::Kind* kind = nullptr;
  std::vector<double> predicted, measured;

  std::string name() const { return fmt::format("{} {}", strategy, codec); }
  const char* launch() const { return kind->name == "hogwild" ? "threads" : "processes"; }
};

std::vector<Way> ways_of(const TrainingQuestion& question, const Place& place) {
  std::vector<Way> ways;
  for (const auto& kind : sync::strategies()) {
    const auto& wanted = question.strategies;
    if (!wanted.empty() && std::ranges::find(wanted, kind.name) == wanted.end()) continue;
    if (kind.name == "hogwild" && place.emulated()) continue;  // it is for threads of one process
    // The number of learners that is best is found while running: no step is like the next until then.
    const std::string name = kind.name == "sma" ? "sma:learners=1" : std::string(kind.name);
    for (const auto& codec : question.codecs) {
      if (codec != "none" && kind.compresses == sync::Kind::Compresses::nothing) continue;
      ways.push_back({name, codec, &kind, {}, {}});
    }
  }
  return ways;
}

// What a mean step took the first worker, by its parts, in seconds.
struct StepParts {
  double step = 0, forward = 0, backward = 0, optimizer = 0;
  std::int64_t steps = 0, measured = 0;  // of the run; the last so many of them
};

StepParts between(const StepParts& a, const StepParts& b) {
  return {(a.step + b.step) / 2, (a.forward + b.forward) / 2, (a.backward + b.backward) / 2,
          (a.optimizer + b.optimizer) / 2};
}

plan::Quantiles scaled(const plan::Quantiles& times, double by) {
  return {by * times.p10, by * times.p50, by * times.p90};
}

// The profile in the state that the machine was in when steps without exchange took `now` in the mean.
plan::Profile in_state(plan::Profile profile, const StepParts& now) {
  // A profile has medians, and how far each step is from them.
  double mean = 0;
  for (double residual : profile.residuals) mean += residual / static_cast<double>(profile.residuals.size());
  if (profile.residuals.empty()) mean = 1;
  const auto by = [&](double seconds, const plan::Quantiles& times) {
    return times.p50 > 0 ? seconds / (mean * times.p50) : 1;
  };
  const double other = std::max(0.0, now.step - now.forward - now.backward - now.optimizer);
  const double backward = by(now.backward, profile.backward_s), update = by(now.optimizer, profile.optimizer_s);
  profile.forward_s = scaled(profile.forward_s, by(now.forward, profile.forward_s));
  profile.backward_s = scaled(profile.backward_s, backward);
  for (auto& gradient : profile.gradients) gradient.ready_s = scaled(gradient.ready_s, backward);
  profile.optimizer_s = scaled(profile.optimizer_s, update);
  profile.update_s_per_byte *= update;
  const double step = profile.forward_s.p50 + profile.backward_s.p50 + profile.optimizer_s.p50 + other;
  profile.step_s = scaled(profile.step_s, step / profile.step_s.p50);
  return profile;
}

constexpr StepParts kShort{.steps = 32, .measured = 32};

class Trial {
 public:
  // `cluster`: what the place costs; none where that is to be measured afresh in each round.
  Trial(const TrainingQuestion& question, const Place& place, const plan::Cluster* cluster, const std::string& model)
      : question_(question), place_(place), cluster_(cluster), group_(fmt::format("{}, {}", place.name, model)) {
    const auto colon = model.find(':');
    model_ = {"--model", model.substr(0, colon), "--batch", colon == model.npos ? "64" : model.substr(colon + 1)};
  }

  TrainingAnswer judge() {
    TrainingAnswer answer;
    auto ways = ways_of(question_, place_);
    for (round_ = 0; round_ < question_.rounds; ++round_) judge_once(ways);
    const double usual = median(alone_);
    for (const auto& way : ways) {
      Judged one{group_, way.name(), usual * median(way.predicted), {}};
      for (double over : way.measured) one.measured_s.push_back(usual * over);
      answer.steps.push_back(std::move(one));
    }
    answer.pick = picked(ways, usual);
    return answer;
  }

 private:
  static constexpr std::size_t kTogether = 6;   // ways that take turns: each is processes with LibTorch in them
  static constexpr std::int64_t kSettled = 20;  // steps: buckets are planned, caches and clocks have settled
  static constexpr double kTurnSeconds = 0.25;  // at least
  static constexpr int kOfATurn = 12;           // steps of a turn, at least

  void judge_once(std::vector<Way>& ways) {
    const auto cluster = cluster_ != nullptr ? *cluster_ : measured_cluster(place_, question_.workers);
    const auto profile = profiled();
    if (place_.emulated()) return one_by_one(ways, cluster, profile);
    for (std::size_t begin = 0, end = 0; begin < ways.size(); begin = end) {
      while (end < ways.size() && end - begin < kTogether && ways[end].launch() == ways[begin].launch()) ++end;
      show_progress(fmt::format("{}: {} to {} of {}, round {}", group_, begin + 1, end, ways.size(), round_ + 1));
      in_turns({ways.begin() + static_cast<std::ptrdiff_t>(begin), ways.begin() + static_cast<std::ptrdiff_t>(end)},
               cluster, profile);
    }
  }

  // On one host ways differ by little, and the machine has moods: some ways take turns with one that exchanges nothing.
  void in_turns(std::span<Way> ways, const plan::Cluster& cluster, const plan::Profile& profile) {
    const std::string launch = ways.front().launch();
    const auto start = [&](const Way* way, std::int64_t steps) {
      const std::string out = next_folder();
      Argv command = train_command(way ? way->strategy : "average-at-end", way ? way->codec : "none", launch,
                                   kSettled + steps, out);
      // It stands still most of the time, and nobody is dead.
      command.insert(command.end(), {"--log-every", "1", "--timeout", "3600", "--epochs", "100000"});
      if (way && way->kind->needs_servers) command.insert(command.end(), {"--lease", "3600"});
      return std::make_unique<PausedRun>(command, out, kSettled);
    };
    struct Turning {
      std::unique_ptr<PausedRun> run;
      double turn_s = 0;
      std::int64_t steps = 0;
      std::vector<double> over;  // by turn: a step over one without exchange
    };
    const auto alone = start(nullptr, 1'000'000);  // as long as the others
    const double alone_s = std::max(kTurnSeconds, kOfATurn * profile.step_s.p50);
    std::vector<Turning> all;
    for (const auto& way : ways) {
      const double about = predict(cluster, profile, way, kShort);
      const auto steps = steps_of(about, 2 * kOfATurn);
      all.push_back({start(&way, steps), std::max(kTurnSeconds, kOfATurn * about), steps, {}});
    }
    std::vector<Turn> without;
    const auto running = [](const Turning& one) { return !one.run->ended(); };
    while (std::ranges::any_of(all, running)) {
      std::vector<double> alone_steps, steps(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 3 == 0) {
          without.push_back(alone->turn(alone_s));
          alone_steps.push_back(mean_step(without.back()));
        }
        if (running(all[i])) steps[i] = mean_step(all[i].run->turn(all[i].turn_s));
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (steps[i] > 0) all[i].over.push_back(steps[i] / median(alone_steps));
      }
      for (double one : alone_steps) alone_.push_back(one);
    }
    const auto usual = middle_of(without);
    const StepParts now{usual.step, usual.forward, usual.backward, usual.optimizer};
    auto here = profile;
    if (auto residuals = residuals_of(without); !residuals.empty()) here.residuals = std::move(residuals);
    here = in_state(std::move(here), now);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const StepParts took{.steps = kSettled + all[i].steps, .measured = all[i].steps};
      ways[i].predicted.push_back(predict(cluster, here, ways[i], took) / now.step);
      ways[i].measured.push_back(middle_mean(all[i].over));
    }
  }

  // Over slow links computing is the lesser part: each way by itself. A step without exchange is measured before and
  // after every fourth: the machine has moods, and ways are compared in the same one.
  void one_by_one(std::vector<Way>& ways, const plan::Cluster& cluster, const plan::Profile& profile) {
    std::string launch;
    StepParts before;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      auto& way = ways[i];
      show_progress(fmt::format("{}: {}, {} of {}, round {}", group_, way.name(), i + 1, ways.size(), round_ + 1));
      if (launch != way.launch()) before = without_exchange(launch = way.launch(), profile.step_s.p50);
      const double about = predict(cluster, in_state(profile, before), way, kShort);
      const auto took = train(way.strategy, way.codec, launch, about);
      const bool again = i % 4 == 3;
      const auto after = again ? without_exchange(launch, before.step) : before;
      if (again) moods_.push_back(std::abs(after.step - before.step) / std::max(after.step, before.step));
      const auto now = between(before, after);
      way.predicted.push_back(predict(cluster, in_state(profile, now), way, took) / now.step);
      way.measured.push_back(took.step / now.step);
      alone_.push_back(now.step);
      before = after;
    }
  }

  plan::Profile profiled() {
    show_progress(fmt::format("{}: profile", group_));
    const std::string path = folder_.path() + "/profile.json", workers = std::to_string(question_.workers);
    std::vector<std::string> arguments{"profile", "--workers", workers, "--quiet", "-o", path};
    arguments.insert(arguments.end(), model_.begin(), model_.end());
    run_trireme(arguments);
    auto profile = plan::load_profile(path);
    epoch_steps_ = static_cast<std::int64_t>(profile.samples) / (profile.batch * question_.workers);
    if (!place_.emulated()) return profile;
    // What exchanges take from compute depends on what they go over.
    std::vector<std::string> there{"run", "-n", workers};
    put(there, place_, question_.workers);
    there.insert(there.end(), {"--", net::own_program()});
    there.insert(there.end(), arguments.begin(), arguments.end());
    there.insert(there.end(), {"--threads", std::to_string(profile.threads)});
    run_trireme(there);
    const auto in_place = plan::load_profile(path);
    profile.slowdown = in_place.slowdown;
    profile.turn_s = in_place.turn_s;
    return profile;
  }

  // A mean step of the first worker, over the same steps of a run as were measured.
  double predict(const plan::Cluster& cluster, const plan::Profile& profile, const Way& way,
                 const StepParts& took) const {
    plan::Job job;
    job.profile = &profile;
    job.strategy = sync::Choice::parse(way.strategy);
    job.compress = way.codec;
    job.workers = question_.workers;
    job.steps = took.steps;
    const auto simulated = plan::simulate(cluster, job);
    const auto& ends = simulated.step_ends;
    if (ends.empty()) return simulated.step_s;
    const auto before = ends.size() - std::min<std::size_t>(ends.size(), static_cast<std::size_t>(took.measured));
    return (ends.back() - (before > 0 ? ends[before - 1] : 0)) / static_cast<double>(ends.size() - before);
  }

  StepParts without_exchange(const std::string& launch, double about) {
    return train("average-at-end", "none", launch, about);
  }

  // That take about so long as asked for, and all of one epoch: in between the model is judged.
  std::int64_t steps_of(double about_s, std::int64_t least) const {
    const auto most = std::max<std::int64_t>(least, epoch_steps_ * 3 / 4);
    return std::clamp(static_cast<std::int64_t>(question_.seconds / about_s), least, most);
  }

  std::string next_folder() { return fmt::format("{}/run-{}", folder_.path(), runs_++); }

  Argv train_command(const std::string& strategy, const std::string& codec, const std::string& launch,
                     std::int64_t steps, const std::string& out) const {
    Argv command{net::own_program(),
                 "train",
                 "--workers",
                 std::to_string(question_.workers),
                 "--steps",
                 std::to_string(steps),
                 "--strategy",
                 strategy,
                 "--compress",
                 codec,
                 "--launch",
                 launch,
                 "--out",
                 out,
                 "--quiet"};
    // Only the time counts: so slow a rate that nothing diverges.
    command.insert(command.end(), {"--lr", "0.001", "--on-nan", "skip"});
    command.insert(command.end(), model_.begin(), model_.end());
    put(command, place_, question_.workers);
    return command;
  }

  StepParts train(const std::string& strategy, const std::string& codec, const std::string& launch, double about) {
    const auto steps = steps_of(about, 20);
    const std::string out = next_folder();
    run_to_end(train_command(strategy, codec, launch, steps, out));
    std::ifstream file(out + "/run.json");
    const auto measured = nlohmann::json::parse(file).at("summary").at("measured");
    const auto part = [&](const char* name) { return 1e-3 * measured.at("breakdown_ms").at(name).get<double>(); };
    return {part("step"),      part("forward"), part("backward"),
            part("optimizer"), steps,           measured.at("steps").get<std::int64_t>()};
  }

  static std::vector<double> spreads_of(const std::vector<Way>& ways) {
    std::vector<double> spreads;
    for (const auto& way : ways) spreads.push_back(Judged{{}, {}, 0, way.measured}.spread());
    return spreads;
  }

  Picked picked(const std::vector<Way>& ways, double usual) const {
    std::vector<double> predicted, measured;
    for (const auto& way : ways) {
      predicted.push_back(median(way.predicted));
      measured.push_back(median(way.measured));
    }
    const auto pick = static_cast<std::size_t>(std::ranges::min_element(predicted) - predicted.begin());
    const auto best = static_cast<std::size_t>(std::ranges::min_element(measured) - measured.begin());
    const double noise = median(moods_.empty() ? spreads_of(ways) : moods_);
    const auto beyond = kendall_apart(predicted, measured, noise);
    return {.group = group_,
            .picked = ways[pick].name(),
            .best = ways[best].name(),
            .picked_s = usual * measured[pick],
            .best_s = usual * measured[best],
            .kendall = kendall(predicted, measured),
            .noise = noise,
            .kendall_beyond_noise = beyond.kendall,
            .pairs_beyond_noise = beyond.share};
  }

  const TrainingQuestion& question_;
  const Place& place_;
  const plan::Cluster* cluster_;
  const std::string group_;
  std::vector<std::string> model_;
  TemporaryFolder folder_;
  std::vector<double> alone_, moods_;  // steps without exchange; how far two in a row were apart, relative
  int round_ = 0, runs_ = 0;
  std::int64_t epoch_steps_ = 0;
};

}  // namespace

void require_ways(const TrainingQuestion& question, const Place& place) {
  if (!ways_of(question, place).empty()) return;
  throw ConfigError(fmt::format("nothing to measure on {}: no strategy of {} runs there and sends {}", place.name,
                                fmt::join(question.strategies, ", "), fmt::join(question.codecs, " or ")));
}

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

void judge_training(const TrainingQuestion& question, const Place& place,
                    const std::function<void(const TrainingAnswer&)>& tell) {
  std::optional<plan::Cluster> links;  // emulated ones do not change
  if (place.emulated()) links = measured_cluster(place, question.workers);
  for (const auto& model : question.models) {
    const auto answer = Trial(question, place, links ? &*links : nullptr, model).judge();
    show_progress("");
    tell(answer);
  }
}

}  // namespace trireme::bench

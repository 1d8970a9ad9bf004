#include "trireme/cli/bench/predict/predict_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cluster/sim/job/simulate.h"

namespace trireme::bench {
namespace {

cluster::Quantiles scaled(const cluster::Quantiles& times, double by) {
  return {by * times.p10, by * times.p50, by * times.p90};
}

// The profile in the state that the machine was in when steps without exchange took `now`.
cluster::Profile in_state(cluster::Profile profile, const TimedStep& now) {
  // A profile has medians, and how far each step is from them.
  double mean = 0;
  for (double residual : profile.residuals) mean += residual / static_cast<double>(profile.residuals.size());
  if (profile.residuals.empty()) mean = 1;
  const auto by = [&](double seconds, const cluster::Quantiles& times) {
    return times.p50 > 0 ? seconds / (mean * times.p50) : 1;
  };
  const double other = std::max(0.0, now.step - now.forward - now.backward - now.optimizer);
  const double backward = by(now.backward, profile.backward_s), update = by(now.optimizer, profile.optimizer_s);
  profile.forward_s = scaled(profile.forward_s, by(now.forward, profile.forward_s));
  profile.backward_s = scaled(profile.backward_s, backward);
  for (auto& gradient : profile.gradients) gradient.ready_s = scaled(gradient.ready_s, backward);
  profile.optimizer_s = scaled(profile.optimizer_s, update);
  profile.update_s_per_byte *= update;
  // What else a core does, and how fast memory is, changes with its compute.
  for (auto& codec : profile.codecs) {
    codec.encode_s_per_byte *= backward;
    codec.decode_s_per_byte *= backward;
  }
  profile.pack_s_per_byte *= backward;
  profile.pass_s_per_byte *= backward;
  profile.server_s_per_byte *= backward;
  profile.resumed_s *= backward;
  const double step = profile.forward_s.p50 + profile.backward_s.p50 + profile.optimizer_s.p50 + other;
  profile.step_s = scaled(profile.step_s, step / profile.step_s.p50);
  return profile;
}

// The profile as the machine was in these turns without exchange.
cluster::Profile in_state(cluster::Profile profile, const TimedStep& now, const std::vector<Turn>& without) {
  if (auto residuals = residuals_of(without); !residuals.empty()) profile.residuals = std::move(residuals);
  return in_state(std::move(profile), now);
}

// A way, with its step in each round.
struct Rival {
  Way way;
  std::vector<StepTimes> rounds;
};

// The median over rounds.
template <typename Of>
double usual(const Rival& rival, Of of) {
  std::vector<double> values;
  for (const auto& times : rival.rounds) values.push_back(of(times));
  return median(values);
}

class Trial {
 public:
  // `links`: what emulated ones cost, once that was measured; they do not change.
  Trial(const TrainingQuestion& question, const Place& place, std::optional<cluster::Cluster>& links,
        const std::string& model, Kept& kept)
      : question_(question),
        place_(place),
        links_(links),
        kept_(kept),
        group_(fmt::format("{}, {}", place.name, model)),
        runs_(place, question.workers, model) {}

  TrainingAnswer judge() {
    TrainingAnswer answer;
    std::vector<Rival> rivals;
    for (const auto& way : ways_of(question_.strategies, question_.codecs, place_)) rivals.push_back({way, {}});
    for (int round = 1; round <= question_.rounds; ++round) {
      looked_ = false;
      measure(rivals, fmt::format("round {}", round));
    }
    const double moment = usual_moment(rivals);
    for (const auto& rival : rivals) {
      Judged one{
          group_, rival.way.name(), moment * usual(rival, [&](const auto& times) { return predicted(times); }), {}};
      for (const auto& times : rival.rounds) one.measured_s.push_back(moment * measured(times));
      answer.steps.push_back(std::move(one));
    }
    answer.pick = picked(answer.steps);
    run_off(rivals, answer);
    return answer;
  }

 private:
  static constexpr std::size_t kTogether = 6;   // ways that take turns: each is processes with LibTorch in them
  static constexpr std::size_t kAlone = 3;      // that exchange nothing, beside them
  static constexpr double kTurnSeconds = 0.25;  // at least
  static constexpr double kStillSeconds = 13, kBeginSeconds = 2;  // at most; to start a run
  static constexpr int kOfATurn = 12;                             // steps of a turn, at least
  static constexpr std::ptrdiff_t kRested = 2;                    // first steps of a turn
  static constexpr std::int64_t kShort = 32;                      // steps

  void look(const std::string& round) {
    if (std::exchange(looked_, true)) return;
    progress(fmt::format("profile, {}", round));
    if (!place_.emulated()) {
      here_ = measured_cluster(place_, question_.workers);
    } else {
      if (!links_) links_ = measured_cluster(place_, question_.workers);
      here_ = *links_;
    }
    profile_ = runs_.profile();
    epoch_steps_ = static_cast<std::int64_t>(profile_.samples) / (profile_.batch * question_.workers);
  }

  void progress(const std::string& what) const { show_progress(fmt::format("{}: {}", group_, what)); }

  Kept::Key key(const std::string& round, const Way& way) const {
    return {fmt::format("{} workers, {}", question_.workers, group_), round, way.name()};
  }

  // Those that were not measured yet in this round.
  void measure(std::vector<Rival>& rivals, const std::string& round) {
    std::vector<Way> left;
    for (const auto& rival : rivals) {
      if (kept_.find(key(round, rival.way)) == nullptr) left.push_back(rival.way);
    }
    for (std::size_t begin = 0; begin < left.size();) {
      look(round);
      const auto rest = std::span(left).subspan(begin);
      const std::size_t count = together(rest);
      progress(fmt::format("{} to {} of {}, {}", begin + 1, begin + count, left.size(), round));
      in_turns(rest.first(count), round);
      begin += count;
    }
    for (auto& rival : rivals) rival.rounds.push_back(*kept_.find(key(round, rival.way)));
  }

  // How many of the first take turns with each other. Over links nobody stands still for long, neither while others
  // begin nor while they have their turns: what a peer had sent is not taken meanwhile, and a host that takes nothing
  // for 20 s counts as lost (net/socket.h).
  std::size_t together(std::span<const Way> ways) const {
    const std::size_t most = std::min(kTogether, ways.size());
    if (!place_.emulated()) return most;
    std::size_t count = 0;
    for (double still_s = 0; count < most && still_s < kStillSeconds; ++count) {
      const double step_s = about(ways[count]);
      still_s += std::max(kBeginSeconds + TrainingRuns::kSettled * step_s, turn_seconds(step_s));
    }
    return count;
  }

  // Ways differ by little, and the machine has moods: some ways take turns with one that exchanges nothing.
  void in_turns(std::span<const Way> ways, const std::string& round) {
    struct Turning {
      std::unique_ptr<PausedRun> run;
      double turn_s = 0;
      std::int64_t steps = 0;
      std::vector<Weighted> over;         // by turn: a step in the trial's units, and how many there were
      std::vector<std::int64_t> counted;  // numbers of steps
    };
    // Two runs of the same thing are some per cent apart, for as long as they live: which pages they got.
    std::vector<std::unique_ptr<PausedRun>> alone;
    while (alone.size() < kAlone) alone.push_back(runs_.start(without_exchange(), kEndless));
    std::vector<Turning> all;
    for (const auto& way : ways) {
      const double step_s = about(way);
      const auto steps = steps_of(step_s, 2 * kOfATurn);
      all.push_back({runs_.start(way, steps), turn_seconds(step_s), steps, {}, {}});
    }
    std::vector<Turn> without;
    const auto running = [](const Turning& one) { return !one.run->ended(); };
    while (std::ranges::any_of(all, running)) {
      std::vector<double> alone_steps;
      std::vector<Turn> turns(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 2 == 0) {
          without.push_back(turn_of(*alone[without.size() % kAlone], turn_seconds(profile_.step_s.p50)));
          if (!without.back().empty()) alone_steps.push_back(mean_step(without.back()));
        }
        if (running(all[i])) turns[i] = turn_of(*all[i].run, all[i].turn_s);
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (turns[i].empty() || alone_steps.empty()) continue;
        const auto steps = static_cast<double>(turns[i].size());
        all[i].over.push_back({mean_step(turns[i]) / unit(median(alone_steps)), steps});
        for (const auto& one : turns[i]) all[i].counted.push_back(one.number);
      }
    }
    const auto now = mean_of(without);
    const auto profile = in_state(profile_, now, without);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double step_s = mean_of(predict(profile, ways[i], TrainingRuns::kSettled + all[i].steps), all[i].counted);
      kept_.add(key(round, ways[i]), {step_s, unit(now.step) * mean_of(all[i].over), now.step, about(ways[i])});
    }
  }

  // What steps are told in: those without exchange at the same time, for all get longer where the machine is in a mood.
  // Links have none, and may be most of a step: seconds.
  double unit(double alone_s) const { return place_.emulated() ? 1 : alone_s; }
  double predicted(const StepTimes& times) const { return times.predicted_s / unit(times.alone_s); }
  double measured(const StepTimes& times) const { return times.measured_s / unit(times.alone_s); }
  // One unit, as it mostly was.
  double usual_moment(const std::vector<Rival>& rivals) const {
    std::vector<double> alone;
    for (const auto& rival : rivals) {
      for (const auto& times : rival.rounds) alone.push_back(unit(times.alone_s));
    }
    return median(alone);
  }

  // Whoever stood still begins with cold caches, what was on its way over links went on meanwhile, and a connection
  // that rested sends little at first: the first steps of a turn do not count, where there are more.
  static Turn turn_of(PausedRun& run, double seconds) {
    auto steps = run.turn(seconds);
    steps.erase(steps.begin(), steps.begin() + std::clamp<std::ptrdiff_t>(std::ssize(steps) - 1, 0, kRested));
    return steps;
  }

  // The machine has moods, so that turns count by their middle half; but over links a turn may be all of an exchange
  // that comes once in many steps, and links have no moods.
  double mean_of(std::vector<Weighted> turns) const {
    if (!place_.emulated()) return middle_mean(std::move(turns));
    double sum = 0, weight = 0;
    for (const auto& one : turns) {
      sum += one.weight * one.value;
      weight += one.weight;
    }
    return weight > 0 ? sum / weight : 0;
  }

  // Of the steps with these numbers, from 1; beyond the last of them all are like it.
  static double mean_of(const std::vector<double>& steps, const std::vector<std::int64_t>& numbers) {
    double sum = 0;
    for (auto number : numbers) {
      sum += steps[std::min(steps.size(), static_cast<std::size_t>(std::max<std::int64_t>(number, 1))) - 1];
    }
    return sum / static_cast<double>(std::max<std::size_t>(numbers.size(), 1));
  }

  // A usual step, of which as many are long as in the turns of others: these count by their mean.
  TimedStep mean_of(const std::vector<Turn>& turns) const {
    auto step = middle_of(turns);
    std::vector<Weighted> means;
    for (const auto& turn : turns) {
      if (!turn.empty()) means.push_back({mean_step(turn), static_cast<double>(turn.size())});
    }
    const double by = step.step > 0 ? mean_of(means) / step.step : 1;
    for (double* part : {&step.step, &step.forward, &step.backward, &step.optimizer}) *part *= by;
    return step;
  }

  static double turn_seconds(double step_s) { return std::max(kTurnSeconds, kOfATurn * step_s); }

  double about(const Way& way) const {
    const auto steps = predict(profile_, way, kShort);
    return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
  }

  // The steps of the first worker in a run of so many: fewer than that, where workers share the steps and it is slow.
  std::vector<double> predict(const cluster::Profile& profile, const Way& way, std::int64_t steps) const {
    cluster::Job job;
    job.profile = &profile;
    job.strategy = sync::Choice::parse(way.strategy);
    job.compress = way.codec;
    job.workers = question_.workers;
    job.steps = static_cast<int>(steps);
    const auto simulated = cluster::simulate(here_, job);
    std::vector<double> all = simulated.step_ends;
    std::adjacent_difference(all.begin(), all.end(), all.begin());
    if (all.empty()) all.push_back(simulated.step_s);
    return all;
  }

  // That take about so long as asked for, and all of one epoch: in between the model is judged.
  std::int64_t steps_of(double about_s, std::int64_t least) const {
    const auto most = std::max<std::int64_t>(least, epoch_steps_ * 3 / 4);
    return std::clamp(static_cast<std::int64_t>(question_.seconds / about_s), least, most);
  }

  Picked picked(const std::vector<Judged>& steps) const {
    std::vector<double> predicted, measured, spreads;
    for (const auto& one : steps) {
      predicted.push_back(one.predicted_s);
      measured.push_back(one.measured());
      spreads.push_back(one.spread());
    }
    Picked pick{.group = group_, .kendall = kendall(predicted, measured)};
    pick.noise = median(spreads);
    const auto beyond = kendall_apart(predicted, measured, pick.noise);
    pick.kendall_beyond_noise = beyond.kendall;
    pick.pairs_beyond_noise = beyond.share;
    return pick;
  }

  // The way that a planner would pick against those with the least measured ones, all measured once more.
  void run_off(const std::vector<Rival>& rivals, TrainingAnswer& answer) {
    std::vector<std::size_t> order(rivals.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto planned = [](const StepTimes& times) { return times.planned_s; };
    const auto pick = *std::ranges::min_element(order, {}, [&](auto i) { return usual(rivals[i], planned); });
    std::ranges::sort(order, {}, [&](auto i) { return i == pick ? 0 : answer.steps[i].measured(); });
    order.resize(std::min(order.size(), kTogether));
    std::vector<Rival> best;
    for (auto i : order) best.push_back({rivals[i].way, {}});
    for (int round = 1; round <= std::max(2, question_.rounds); ++round) {
      measure(best, fmt::format("the best once more, {}", round));
    }
    const double moment = usual_moment(best);
    const auto step_s = [&](const Rival& one) {
      return moment * usual(one, [&](const auto& times) { return measured(times); });
    };
    const auto& first = *std::ranges::min_element(best, {}, step_s);
    const auto& chosen =
        *std::ranges::find(best, rivals[pick].way.name(), [](const auto& one) { return one.way.name(); });
    answer.pick.picked = chosen.way.name();
    answer.pick.picked_s = step_s(chosen);
    answer.pick.best = first.way.name();
    answer.pick.best_s = step_s(first);
  }

  static constexpr std::int64_t kEndless = 1'000'000;  // steps

  const TrainingQuestion& question_;
  const Place& place_;
  std::optional<cluster::Cluster>& links_;
  Kept& kept_;
  const std::string group_;
  TrainingRuns runs_;
  bool looked_ = false;    // in this round
  cluster::Cluster here_;  // as it was looked at last
  cluster::Profile profile_;
  std::int64_t epoch_steps_ = 0;
};

}  // namespace

void require_ways(const TrainingQuestion& question, const Place& place) {
  if (!ways_of(question.strategies, question.codecs, place).empty()) return;
  throw ConfigError(fmt::format("nothing to measure on {}: no strategy of {} runs there and sends {}", place.name,
                                fmt::join(question.strategies, ", "), fmt::join(question.codecs, " or ")));
}

void judge_training(const TrainingQuestion& question, const Place& place, Kept& kept,
                    const std::function<void(const TrainingAnswer&)>& tell) {
  std::optional<cluster::Cluster> links;
  for (const auto& model : question.models) {
    const auto answer = Trial(question, place, links, model, kept).judge();
    show_progress("");
    tell(answer);
  }
}

}  // namespace trireme::bench

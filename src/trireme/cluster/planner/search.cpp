#include "trireme/cluster/planner/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/bytes_text.h"
#include "trireme/base/text/nearest.h"
#include "trireme/cluster/planner/bounds.h"
#include "trireme/cluster/planner/memory_need.h"
#include "trireme/cluster/sim/job/simulate_json.h"
#include "trireme/cluster/sim/learning/efficiency.h"

namespace trireme::cluster {
namespace {

constexpr std::array<std::string_view, 3> kObjectives{"step", "accuracy", "cost"};
// What gains less than this over the plain variant is not worth its settings.
constexpr double kNoGain = 0.995;
// More than so many are judged by coarse simulations: messages are not followed one by one.
constexpr int kManyWorkers = 256;

struct Judged {
  Candidate candidate;
  Variant variant;
  Option option;
  double value = 0;  // of the objective: the less the better
};

double price_per_s(const Cluster& cluster, int workers) {
  double price = 0;
  for (const auto& node : cluster.nodes) {
    if (workers <= 0) break;
    const int used = std::min(node.count, (workers + node.workers - 1) / node.workers);
    price += used * node.price_per_h / 3600;
    workers -= node.count * node.workers;
  }
  return price;
}

class PlanSearch {
 public:
  PlanSearch(const Question& question, const Progress& progress)
      : question_(question),
        progress_(progress),
        network_(question.cluster),
        bounds_(question, network_, splits_),
        efficiencies_(question) {}

  Found run() {
    check();
    listed_ = list_candidates(question_);
    found_.left_out = listed_.left_out;
    for (const auto& one : found_.left_out) found_.considered += one.plans;
    for (std::size_t at : in_order()) judge(listed_.candidates[at]);
    if (ranked_.empty()) nothing_fits();
    conclude();
    return std::move(found_);
  }

 private:
  void check() const {
    if (question_.objective != Objective::cost) return;
    if (question_.profile.samples <= 0) {
      throw ConfigError(
          "--objective cost: the profile does not say how many samples an epoch has; profile on real data");
    }
    if (price_per_s(question_.cluster, question_.cluster.workers()) > 0) return;
    throw ConfigError(
        fmt::format("--objective cost: {} has no prices; give its nodes a price per hour (docs/clusters.md)",
                    question_.cluster.file));
  }

  // Best bound first.
  std::vector<std::size_t> in_order() {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < listed_.candidates.size(); ++i) {
      const Candidate& candidate = listed_.candidates[i];
      bound_.push_back(question_.exhaustive ? 0
                                            : value_of(option_at(candidate, bounds_.most_samples_per_s(candidate), 1)));
      order.emplace_back(bound_.back(), i);
    }
    std::ranges::stable_sort(order);
    std::vector<std::size_t> indices;
    for (const auto& [value, index] : order) indices.push_back(index);
    return indices;
  }

  // What follows from a rate.
  Option option_at(const Candidate& candidate, double samples_per_s, double relative) const {
    Option option;
    option.samples_per_s = samples_per_s;
    const auto& profile = question_.profile;
    const double replicas = candidate.on_mesh ? candidate.mesh.data : candidate.workers;
    const double learners = candidate.strategy.learners();
    const double efficiency = batch_efficiency(replicas * learners * profile.batch, profile.noise.scale()) * relative;
    const double samples = std::max(1.0, profile.samples);
    double seconds = samples / samples_per_s;  // of an epoch
    if (question_.objective != Objective::step) {
      seconds *= question_.epochs / efficiency;
      option.seconds_to_accuracy = seconds;
    }
    if (profile.samples > 0) option.price = seconds * price_per_s(question_.cluster, candidate.workers);
    return option;
  }

  double value_of(const Option& option) const {
    switch (question_.objective) {
      case Objective::step:
        return 1 / option.samples_per_s;
      case Objective::accuracy:
        return option.seconds_to_accuracy;
      case Objective::cost:
        return option.price;
    }
    return 0;
  }

  // The value that a way must beat to be in the answer.
  double to_beat() const {
    const auto top = static_cast<std::size_t>(std::max(1, question_.top));
    return question_.exhaustive || ranked_.size() < top ? std::numeric_limits<double>::infinity()
                                                        : ranked_[top - 1].value;
  }

  void leave_out(std::size_t plans, std::string_view why) {
    if (plans == 0) return;
    auto known = std::ranges::find(found_.left_out, why, &LeftOut::why);
    if (known == found_.left_out.end()) known = found_.left_out.insert(known, {0, std::string(why)});
    known->plans += plans;
  }

  void judge(const Candidate& candidate) {
    auto variants = list_variants(question_, candidate);
    found_.considered += variants.size();
    const double bound = bound_[static_cast<std::size_t>(&candidate - listed_.candidates.data())];
    if (bound >= to_beat() || closer_bound(candidate) >= to_beat()) {
      return leave_out(variants.size(), "even their bound is behind what was found");
    }
    if (!question_.exhaustive) {
      const std::size_t all = variants.size();
      variants = bounds_.promising(candidate, std::move(variants));
      leave_out(all - variants.size(),
                "closed forms put other algorithms, buckets or lanes of the same way ahead of them");
    }
    std::optional<Judged> best;
    for (const auto& variant : variants) {
      if (simulations_ >= static_cast<std::size_t>(question_.most)) {
        leave_out(1, fmt::format("not simulated: {} plans are the limit", question_.most));
        continue;
      }
      auto one = simulated(candidate, variant);
      if (one && (!best || one->value < best->value * (variant.plain() ? 1 : kNoGain))) best = std::move(one);
    }
    if (best) insert(std::move(*best));
  }

  double closer_bound(const Candidate& candidate) {
    if (question_.exhaustive || candidate.workers == 1 || ranked_.empty()) return 0;
    return value_of(option_at(candidate, bounds_.most_at_closer_look(candidate), 1));
  }

  std::optional<Judged> simulated(const Candidate& candidate, const Variant& variant) {
    ++simulations_;
    if (progress_) progress_(simulations_, static_cast<std::size_t>(question_.most));
    Simulated result;
    try {
      auto job = job_of(question_, candidate, variant);
      job.splits = splits_;
      job.coarse = !question_.exhaustive && candidate.workers > kManyWorkers;
      result = simulate(network_, job);
    } catch (const ConfigError& error) {
      leave_out(1, error.what());
      return std::nullopt;
    }
    if (result.memory_bytes == 0) result.memory_bytes = memory_needed(question_, candidate);
    const std::uint64_t there = memory_there(question_, candidate.workers);
    if (there > 0 && result.memory_bytes > there) {
      const std::uint64_t least = listed_.least_bytes;
      listed_.least_bytes = least == 0 ? result.memory_bytes : std::min(least, result.memory_bytes);
      leave_out(1, kTooLarge);
      return std::nullopt;
    }
    return valued(candidate, variant, result);
  }

  // With what is learnt from a sample, where that counts and might matter.
  std::optional<Judged> valued(const Candidate& candidate, const Variant& variant, const Simulated& result) {
    Judged one{candidate, variant, option_at(candidate, result.samples_per_s, 1)};
    one.value = value_of(one.option);
    std::string why = result.why;
    if (question_.objective != Objective::step && one.value < to_beat()) {
      const double relative = efficiencies_.relative(candidate);
      if (relative <= 0) {
        leave_out(1, "a small model that was co-simulated never got as good as with all-reduce");
        return std::nullopt;
      }
      if (relative < 1) why += fmt::format("; a sample teaches {:.0f} % of all-reduce's", 100 * relative);
      one.option = option_at(candidate, result.samples_per_s, relative);
      one.value = value_of(one.option);
    }
    ++found_.judged;
    one.option.settings = settings_of(question_, candidate, variant);
    one.option.step_s = result.step_s;
    one.option.memory_bytes = result.memory_bytes;
    const std::int64_t steps = result.workers.empty() ? 1 : std::max<std::int64_t>(1, result.workers[0].steps);
    one.option.bytes_per_step = result.bytes_sent / static_cast<std::uint64_t>(steps);
    one.option.why = std::move(why);
    return one;
  }

  void insert(Judged one) {
    const auto place = std::ranges::upper_bound(ranked_, one.value, {}, &Judged::value);
    ranked_.insert(place, std::move(one));
  }

  [[noreturn]] void nothing_fits() const {
    std::string text = "no plan fits";
    if (listed_.least_bytes > 0) {
      text = fmt::format(
          "no plan fits: the smallest needs {} for a worker, and {} are there; give more memory, more "
          "workers or a smaller batch",
          bytes_text(listed_.least_bytes), bytes_text(memory_there(question_, question_.cluster.workers())));
    } else if (!found_.left_out.empty()) {
      text += fmt::format(": {}", std::ranges::max_element(found_.left_out, {}, &LeftOut::plans)->why);
    }
    throw ConfigError(text);
  }

  // What each gains over the next one, in the objective's terms.
  void explain() {
    constexpr std::array<std::string_view, 3> kUnits{"faster", "sooner there", "cheaper"};
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      std::string& why = ranked_[i].option.why;
      if (i + 1 == ranked_.size()) continue;
      const double gain = 100 * (1 - ranked_[i].value / ranked_[i + 1].value);
      if (gain < 0.05) continue;
      why += fmt::format("; {:.1f} % {} than the next", gain, kUnits[static_cast<std::size_t>(question_.objective)]);
    }
  }

  void conclude() {
    explain();
    const auto top = static_cast<std::size_t>(std::max(1, question_.top));
    for (std::size_t i = 0; i < std::min(top, ranked_.size()); ++i) found_.options.push_back(ranked_[i].option);
    auto job = job_of(question_, ranked_[0].candidate, ranked_[0].variant);
    found_.prediction = to_json(simulate(network_, job)).dump();
    if (question_.objective == Objective::step) {
      const Candidate& best = ranked_[0].candidate;
      if (best.strategy.traits().in_backward && best.compress == "none") return;
      found_.notes.push_back("a step says nothing of what is learnt in it: --objective accuracy counts that, too");
      return;
    }
    if (question_.profile.noise.scale() <= 0) {
      found_.notes.push_back("the profile knows no gradient noise: samples count alike in batches of any size");
    }
    if (question_.profile.samples <= 0) {
      found_.notes.push_back("the profile does not say how many samples an epoch has: times are of one sample");
    }
    if (efficiencies_.fewer_workers()) {
      found_.notes.push_back("what strategies and codecs cost in learning was co-simulated with fewer workers");
    }
  }

  const Question& question_;
  const Progress& progress_;
  const Network network_;
  const std::shared_ptr<mesh::MeshSplits> splits_ = std::make_shared<mesh::MeshSplits>();
  Bounds bounds_;
  Efficiencies efficiencies_;
  Candidates listed_;
  std::vector<double> bound_;  // by way
  std::vector<Judged> ranked_;
  std::size_t simulations_ = 0;
  Found found_;
};

}  // namespace

std::string_view name(Objective objective) { return kObjectives[static_cast<std::size_t>(objective)]; }

Objective parse_objective(std::string_view text) {
  for (std::size_t i = 0; i < kObjectives.size(); ++i) {
    if (kObjectives[i] == text) return static_cast<Objective>(i);
  }
  not_one_of("--objective", text, kObjectives);
}

Found search(const Question& question, const Progress& progress) { return PlanSearch(question, progress).run(); }

}  // namespace trireme::cluster

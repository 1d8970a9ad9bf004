#include "trireme/operators/trial.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "trireme/ops/instruction_set.h"
#include "trireme/ops/measurements.h"

namespace trireme::operators {
namespace {

// What is not faster than LibTorch's by this much may be slower next time.
constexpr double kBetter = 0.97;
constexpr double kHopeless = 3;  // times the fastest: measured no more

struct Effort {
  int least_rounds, most_rounds;  // the first touches memory that nothing has touched
  double seconds;                 // after the least rounds, no more begin than this lasts
};
Effort effort_of(Thoroughness thoroughness) {
  if (thoroughness == Thoroughness::quick) return {2, 9, 0.03};
  return {5, 25, 0.15};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this process, as LibTorch's table of operators is.
ops::Measurements& measurements() {
  static ops::Measurements kept(ops::measurements_path());
  return kept;
}

// Whether a result is the first candidate's; where that is not finite there is nothing to compare with.
bool is_same(const torch::Tensor& result, const torch::Tensor& first, double tolerance) {
  const double norm = first.norm().item<double>();
  if (!std::isfinite(norm)) return true;
  return (result - first).norm().item<double>() <= tolerance * norm + 1e-30;
}

using Run = std::function<torch::Tensor(std::size_t)>;

// The least seconds of each; 0 of one whose result is wrong.
std::vector<double> measure(const std::string& of, const std::vector<Trial::Candidate>& candidates,
                            Thoroughness thoroughness, const Run& run) {
  const torch::NoGradGuard no_grad;
  const Effort effort = effort_of(thoroughness);
  std::vector<double> seconds(candidates.size(), 0);
  std::vector<bool> wrong(candidates.size(), false);
  torch::Tensor first;
  const double begin = seconds_now();
  double least = 0;
  for (int round = 0; round < effort.most_rounds; ++round) {
    if (round >= effort.least_rounds && seconds_now() - begin > effort.seconds) break;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      if (wrong[k] || (round > 0 && seconds[k] > kHopeless * least)) continue;
      const double started = seconds_now();
      const torch::Tensor result = run(k);
      const double took = std::max(seconds_now() - started, 1e-9);
      seconds[k] = round < 2 ? took : std::min(seconds[k], took);
      if (round > 0) continue;
      if (k == 0) first = result;
      if (is_same(result, first, candidates[k].tolerance)) continue;
      wrong[k] = true;
      measurements().say(fmt::format("{}: {} computes other numbers than {} and is not used; please report it", of,
                                     candidates[k].name, candidates[0].name));
    }
    least = INFINITY;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      if (!wrong[k]) least = std::min(least, seconds[k]);
    }
  }
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    if (wrong[k]) seconds[k] = 0;
  }
  return seconds;
}

}  // namespace

Trial::Trial(const std::string& of, std::vector<Candidate> candidates, const Settings& settings)
    : of_(fmt::format("{}, {}, libtorch {}", of, ops::instruction_set(), TORCH_VERSION)),
      candidates_(std::move(candidates)),
      thoroughness_(settings.thoroughness),
      picked_(candidates_.size() == 1 ? 0 : -1),
      seconds_(candidates_.size(), 0) {}

int Trial::pick(const Run& run) {
  MutexLock lock(mutex_);
  if (picked_ >= 0) return picked_;
  const bool afresh = thoroughness_ == Thoroughness::thorough;
  auto known = afresh ? std::nullopt : measurements().find(of_);
  const auto knows = [&](const Candidate& each) { return known->contains(each.name); };
  if (!known || !std::ranges::all_of(candidates_, knows)) {
    const auto seconds = measure(of_, candidates_, thoroughness_, run);
    ops::Times times;
    for (std::size_t k = 0; k < candidates_.size(); ++k) {
      if (seconds[k] > 0) times[candidates_[k].name] = seconds[k];
    }
    known = measurements().keep(of_, times, afresh);
  }
  std::size_t best = 0;
  for (std::size_t k = 0; k < candidates_.size(); ++k) {
    if (!knows(candidates_[k])) continue;
    seconds_[k] = known->at(candidates_[k].name);
    const double limit = best == 0 ? kBetter * seconds_[0] : seconds_[best];
    if (k > 0 && seconds_[k] < limit) best = k;
  }
  picked_ = static_cast<int>(best);
  return picked_;
}

Use Trial::use() const {
  const int picked = picked_;
  if (picked < 0) return {};
  MutexLock lock(mutex_);
  Use use;
  const auto at = static_cast<std::size_t>(picked);
  use.picked = candidates_[at].name;
  use.predicted_us = candidates_[at].predicted * 1e6;
  use.measured_us = seconds_[at] * 1e6;
  for (std::size_t k = 0; k < candidates_.size(); ++k) {
    if (seconds_[k] > 0) use.candidates.push_back({candidates_[k].name, seconds_[k] * 1e6});
  }
  return use;
}

std::shared_ptr<Trial> trial_of(const std::string& key, const std::function<std::shared_ptr<Trial>()>& make) {
  static Mutex mutex;
  static std::map<std::string, std::shared_ptr<Trial>> all;
  MutexLock lock(mutex);
  auto& found = all[key];
  if (!found) found = make();
  return found;
}

std::string measurements_note() { return measurements().note(); }

}  // namespace trireme::operators

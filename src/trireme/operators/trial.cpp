#include "trireme/operators/trial.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <utility>

#include "trireme/ops/instruction_set.h"
#include "trireme/ops/measurements.h"
#include "trireme/ops/parallel.h"

namespace trireme::operators {
namespace {

// What is not faster than LibTorch's by this much may be slower next time.
constexpr double kBetter = 0.97;
constexpr double kHopeless = 3;  // times the fastest: measured no more

// After the least rounds no more begin than this lasts; longer where others had the processor meanwhile.
struct Effort {
  int least_rounds, most_rounds;
  double seconds, disturbed_seconds;
};
Effort effort_of(Thoroughness thoroughness) {
  if (thoroughness == Thoroughness::quick) return {2, 9, 0.03, 0.15};
  return {5, 25, 0.15, 0.75};
}

double seconds_of(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The time of one implementation. One thread's is its own on the processor, whoever else computes; a team's is the
// clock's, and counts only where its first thread kept its processor.
class Stopwatch {
 public:
  explicit Stopwatch(bool alone) : alone_(alone) {}

  torch::Tensor time(const std::function<torch::Tensor()>& run) {
    const double begin = seconds_of(CLOCK_MONOTONIC), own = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    torch::Tensor result = run();
    const double busy = std::max(seconds_of(CLOCK_THREAD_CPUTIME_ID) - own, 1e-9),
                 wall = std::max(seconds_of(CLOCK_MONOTONIC) - begin, 1e-9);
    const double took = alone_ ? busy : wall;
    last_ = took;
    if (++calls_ == 1) return result;  // touches memory that nothing has touched
    least_ = std::min(least_, took);
    if (!alone_ && wall > kDisturbed * busy + kWake) return result;
    least_undisturbed_ = std::min(least_undisturbed_, took);
    ++undisturbed_;
    return result;
  }
  bool settled() const { return undisturbed_ >= 2; }
  double least() const {
    return std::isfinite(least_undisturbed_) ? least_undisturbed_ : std::isfinite(least_) ? least_ : last_;
  }

 private:
  static constexpr double kDisturbed = 1.25, kWake = 20e-6;
  bool alone_;
  int calls_ = 0, undisturbed_ = 0;
  double last_ = 0, least_ = INFINITY, least_undisturbed_ = INFINITY;
};

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
  std::vector<Stopwatch> watches(candidates.size(), Stopwatch(ops::threads() == 1));
  std::vector<std::size_t> rivals(candidates.size());
  std::iota(rivals.begin(), rivals.end(), 0);
  std::vector<double> seconds(candidates.size(), 0);
  torch::Tensor first;
  const double begin = seconds_of(CLOCK_MONOTONIC);
  for (int round = 0; round < effort.most_rounds; ++round) {
    const bool settled = std::ranges::all_of(rivals, [&](std::size_t k) { return watches[k].settled(); });
    const double elapsed = seconds_of(CLOCK_MONOTONIC) - begin;
    if (round >= effort.least_rounds && elapsed > (settled ? effort.seconds : effort.disturbed_seconds)) break;
    for (const std::size_t k : rivals) {
      const torch::Tensor result = watches[k].time([&] { return run(k); });
      seconds[k] = watches[k].least();
      if (round > 0) continue;
      if (k == 0) first = result;
      if (is_same(result, first, candidates[k].tolerance())) continue;
      seconds[k] = 0;
      measurements().say(fmt::format("{}: {} computes other numbers than {} and is not used; please report it", of,
                                     candidates[k].name, candidates[0].name));
    }
    double least = INFINITY;
    for (const std::size_t k : rivals) {
      if (seconds[k] > 0) least = std::min(least, seconds[k]);
    }
    // The first call of a library makes what later ones find: nobody is judged by it.
    const double most = round == 0 ? INFINITY : kHopeless * least;
    std::erase_if(rivals, [&](std::size_t k) { return seconds[k] == 0 || seconds[k] > most; });
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
  use.bf16 = candidates_[at].bf16;
  use.autocast = std::ranges::any_of(candidates_, &Candidate::bf16);
  use.predicted_us = candidates_[at].predicted * 1e6;
  use.measured_us = seconds_[at] * 1e6;
  for (std::size_t k = 0; k < candidates_.size(); ++k) {
    if (seconds_[k] > 0) use.candidates.push_back({candidates_[k].name, seconds_[k] * 1e6});
  }
  return use;
}

std::string measurements_note() { return measurements().note(); }

}  // namespace trireme::operators

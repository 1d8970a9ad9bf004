#include "trireme/operators/trial.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace trireme::operators {
namespace {

constexpr int kTrials = 3;  // of each candidate; the first touches memory that nothing has touched
// What is not faster than LibTorch's by this much may be slower next time.
constexpr double kBetter = 0.97;

}  // namespace

double trial_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Trial::Trial(std::vector<Candidate> candidates)
    : candidates_(std::move(candidates)), picked_(candidates_.size() == 1) {}

std::size_t Trial::next() {
  MutexLock lock(mutex_);
  if (picked_) return best_;
  const auto fewest = std::ranges::min_element(candidates_, {}, &Candidate::runs);
  ++fewest->runs;
  return static_cast<std::size_t>(fewest - candidates_.begin());
}

void Trial::note(std::size_t candidate, double seconds) {
  MutexLock lock(mutex_);
  Candidate& it = candidates_[candidate];
  it.least = it.least == 0 ? seconds : std::min(it.least, seconds);
  if (picked_) return;
  if (!std::ranges::all_of(candidates_, [](const Candidate& c) { return c.runs >= kTrials && c.least > 0; })) return;
  auto best = std::ranges::min_element(candidates_, {}, &Candidate::least);
  if (best->least > kBetter * candidates_.front().least) best = candidates_.begin();
  best_ = static_cast<std::size_t>(best - candidates_.begin());
  picked_ = true;
}

Use Trial::use() const {
  MutexLock lock(mutex_);
  if (!picked_) return {.picked = "(trying)"};
  const Candidate& best = candidates_[best_];
  return {.picked = best.name, .predicted_us = best.predicted * 1e6, .measured_us = best.least * 1e6};
}

std::shared_ptr<Trial> trial_of(const std::string& key, std::vector<Trial::Candidate> (*make)()) {
  static Mutex mutex;
  static std::map<std::string, std::shared_ptr<Trial>> all;
  MutexLock lock(mutex);
  auto& found = all[key];
  if (!found) found = std::make_shared<Trial>(make());
  return found;
}

}  // namespace trireme::operators

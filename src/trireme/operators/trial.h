// Which of several implementations is fastest: each is measured in the first calls, in turns, and the fastest kept.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/operators/settings.h"

namespace trireme::operators {

// The first candidate is LibTorch's where there is more than one: another must be faster beyond noise. Any thread.
class Trial {
 public:
  struct Candidate {
    std::string name;
    double predicted = 0;  // seconds; 0: nobody predicts it
    int runs = 0;
    double least = 0;  // seconds
  };
  explicit Trial(std::vector<Candidate> candidates);

  // The candidate that is picked, or whose turn it is.
  std::size_t next();
  void note(std::size_t candidate, double seconds);
  // What is picked, predicted and measured.
  Use use() const;

 private:
  mutable Mutex mutex_;
  std::vector<Candidate> candidates_ TRIREME_GUARDED_BY(mutex_);
  std::size_t best_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool picked_ TRIREME_GUARDED_BY(mutex_) = false;
};

double trial_seconds();  // of a clock that only goes forward

// run(candidate) for the one whose turn it is, timed.
template <class Run>
auto run_candidate(Trial& trial, const Run& run) {
  const std::size_t candidate = trial.next();
  const double begin = trial_seconds();
  auto result = run(candidate);
  trial.note(candidate, trial_seconds() - begin);
  return result;
}

// The trial of this process for `key`, made by `make` the first time.
std::shared_ptr<Trial> trial_of(const std::string& key, std::vector<Trial::Candidate> (*make)());

}  // namespace trireme::operators

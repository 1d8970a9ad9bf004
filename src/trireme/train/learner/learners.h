// The learners of a worker, most often one. A strategy may want several, or as many as make training fastest: then
// their number is found by watching throughput, the same on every worker.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "trireme/sync/learner_tuner.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/learner.h"
#include "trireme/train/learner/learner_pool.h"

namespace trireme::train {

class Learners {
 public:
  // The first has the model of `work`; the others have their own.
  // `rank`: of this worker's random numbers.
  Learners(const Config& config, const Workload& work, int rank, sync::Strategy& strategy, HeldModel& held);

  std::size_t size() const { return all_.size(); }
  Learner& operator[](int k) { return *all_[static_cast<std::size_t>(k)]; }
  Learner& first() { return *all_.front(); }
  HeldModel& held() { return held_; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

  // work(0) … work(count - 1), at once.
  void run(int count, const std::function<void(int)>& work) { pool_.run(count, work); }

  // Where the strategy works on them, all with the first one's weights.
  std::vector<sync::Replica> replicas();

  // After each step: what it took. Where their number is to be found, and it is time to, changes it and lets the
  // strategy begin anew. Collective. What to tell the user; empty most often.
  std::string tune(WorkerGroup& group, double samples, double seconds);

 private:
  void resize(int count);

  const Config& config_;
  const Workload& work_;
  const int rank_;
  sync::Strategy& strategy_;
  HeldModel& held_;
  const int threads_;  // of the worker, as set when this was made: its learners share them
  LearnerPool pool_;
  std::vector<std::unique_ptr<Learner>> all_;

  // While their number is being found.
  std::optional<sync::LearnerTuner> tuner_;
  int steps_ = 0;              // of the window at hand
  std::vector<double> rates_;  // samples per second, by step
};

}  // namespace trireme::train

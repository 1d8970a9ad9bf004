// What a run's step will take, said by the simulator before it is seen, and what it then took.
//
// The first steps settle; some after them are measured, compute and exchange apart. From these, and from a few
// all-reduces before the first step, one worker predicts all later steps, which are what is compared with it.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trireme/cluster/planner/plan_file.h"
#include "trireme/report/prediction/cluster_fit.h"
#include "trireme/report/profile/step_samples.h"
#include "trireme/sync/strategy.h"
#include "trireme/train/config/straggle.h"
#include "trireme/train/group/worker_group.h"
#include "trireme/train/learner/gradients.h"

namespace trireme::train {

class Prediction {
 public:
  // Of another's making: a plan's, or a mesh's. Counts from the first settled step on.
  struct Told {
    std::optional<cluster::PredictedStep> step;
    std::string why_not;  // where there is none: why
  };
  // Collective over `world`, where there is none of another's making. `total_steps` as far as can be told.
  Prediction(const Config& config, Communicator& world, WorkerGroup& group, const sync::Strategy& strategy,
             std::size_t gradient_bytes, std::int64_t total_steps, std::optional<Told> told);

  // After each step of this worker: a few additions. `outcome` with all that was waited in exchanges.
  void step(const StepOutcome& outcome, double optimizer_s, double whole_s);
  // After step(): whether predict() is to be called now. On every worker after the same number of steps.
  bool due() const { return !told_ && steps_ == from_; }
  // Steps have become others: what was measured and predicted of them here is forgotten. On every worker after the same
  // number of steps.
  void begin_again();
  // Collective where the workers keep step. `samples` of an epoch.
  void predict(DataParallel* net, double samples);

  // At the end. "step: predicted 12.3 ms, measured 12.6 ms (+2.4 %)"
  std::string line() const;
  // Adds "predicted" and "measured", as far as they are known.
  void add_to(nlohmann::json& summary) const;

 private:
  // Adds up to milliseconds of a mean step.
  struct Sums {
    cluster::PredictedStep ms;
    std::int64_t steps = 0;
    void add(const StepOutcome& outcome, double optimizer_s, double whole_s);
    cluster::PredictedStep mean() const;
  };
  cluster::Profile own_profile(DataParallel* net, double samples, const cluster::NodeClass& host) const;
  void slow_workers(cluster::Cluster& cluster);

  const Config& config_;
  WorkerGroup& group_;
  const bool lockstep_;  // workers take the same number of steps
  const bool in_backward_;
  const std::string transport_;
  const int threads_;
  const std::int64_t first_, from_;  // steps: measured for the profile from the one, predicted from the other
  const bool by_another_;            // who predicts
  std::optional<Told> told_;
  MeasuredExchange exchange_;
  std::int64_t steps_ = 0;
  StepSamples samples_;
  std::vector<double> own_;       // what a step of the profile took this worker, and what it was held up
  Sums before_, measured_, all_;  // the steps of the profile, those that are predicted, and all
};

nlohmann::json to_json(const cluster::PredictedStep& step);

// Workers that are slow on purpose as a simulation has them, of steps that compute so long; nothing where nobody is
// slowed, or where only `pauses` are asked for and there are none.
std::optional<cluster::Straggler> straggler_of(const Straggle& straggle, double compute_s, bool pauses);

}  // namespace trireme::train

// What a run tells the world: the terminal, metrics.jsonl, TensorBoard, trace.json and run.json. Rank 0 writes; the
// others only lend their part of the trace.
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/report/accounts.h"
#include "trireme/report/event_writer.h"
#include "trireme/report/metrics.h"
#include "trireme/report/prediction/prediction.h"
#include "trireme/report/progress.h"
#include "trireme/report/trace_file.h"
#include "trireme/train/checkpoint/state.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/evaluate.h"
#include "trireme/train/learner/gradients.h"
#include "trireme/train/learner/lane_trial.h"
#include "trireme/train/objective/divergence.h"

namespace trireme::train {

class Recorder {
 public:
  // `resumed`: the step a run goes on from.
  // `rank` is this worker's in the run: the first one's writes.
  // `objective`: what is told of, under which names.
  Recorder(const Config& config, const Objective& objective, Communicator& world, int rank,
           std::optional<std::int64_t> resumed, Verbosity verbosity);

  // The first worker is gone, and this one writes from here on, after what is there up to `step`.
  void take_over(std::int64_t step);
  void header(const RunHeader& header);
  // Of training, before this process: rates are of what it did itself.
  void begin_at(double seconds) { epoch_begin_s_ = seconds; }
  // The loss of one who has learned nothing.
  void set_chance(double loss) { divergence_.set_chance(loss); }
  // After each step. `optimizer_s` and the whole step in seconds, this worker's.
  // `samples` of all workers; of `progress` where in the run this is.
  void step(const StepOutcome& outcome, const ExchangeTimes& exchange, const Place& place, double samples,
            const StepProgress& progress, double lr, double optimizer_s, double whole_s);
  // Since the last mark, of all workers.
  struct Part {
    double loss = 0;  // sum weighted by samples
    Score score;      // sums
    double samples = 0;
    std::uint64_t bytes_sent = 0;  // by this worker, since the run began, whatever processes it ran in
    double consensus = -1;         // as in sync::Report
  };
  // How good the model is now. `epoch_ends`: `place` is at the beginning of the next one.
  void mark(const Place& place, const Evaluation& test, double lr, const Part& part, bool epoch_ends);
  void message(std::string_view line);
  // Collective: gathers the trace. The summary as in run.json.
  nlohmann::json finish(const Place& place, const Evaluation& test, std::string_view status,
                        const std::vector<WorkerAccount>& workers, const sync::Report& report,
                        const Prediction& prediction, const LaneTrial& lanes, const nlohmann::json& mesh = {});

 private:
  void open(std::optional<std::int64_t> after);
  void trace(const StepOutcome& outcome, const ExchangeTimes& exchange, double optimizer_s, std::int64_t step);
  void end_epoch(const Place& place, const Evaluation& test, double lr);
  void write_trace_of_all();
  // Of sums while training; nothing where the metric is not told then.
  std::optional<double> trained(const Score& score) const;

  const Config& config_;
  const Objective& objective_;
  Communicator& world_;
  const int rank_;
  const std::filesystem::path folder_;
  bool writes_;
  const std::optional<std::int64_t> resumed_;
  const Verbosity verbosity_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<Progress> progress_;
  std::vector<TraceEvent> traced_;
  double zero_;  // of the trace: when all ranks left one barrier

  std::int64_t steps_ = 0, first_step_ = -1;
  double seconds_ = 0, samples_ = 0;
  StepBreakdown sums_;  // seconds
  // Of the epoch at hand.
  Part epoch_;
  double epoch_begin_s_ = 0;  // of training
  Divergence divergence_;
};

}  // namespace trireme::train

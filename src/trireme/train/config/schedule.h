// The learning rate over a run: one function per schedule, one line each in schedule.cpp. Any of them can start with a
// linear warm-up and be scaled with the batch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::train {

struct ScheduleOptions {
  double base_lr = 0.1;
  std::int64_t total_steps = 0;      // needed by cosine and one-cycle
  std::int64_t steps_per_epoch = 0;  // needed by step, and by a warm-up in epochs
  std::int64_t warmup_steps = 0;
  double warmup_epochs = 0;  // added to warmup_steps
  // Linear scaling: the base is meant for batches of `reference_batch` and multiplied by global / reference. 0: not.
  std::int64_t global_batch = 0, reference_batch = 0;
  bool higher_is_better = true;  // plateau: of the metric it is fed
};

class RateSchedule {
 public:
  virtual ~RateSchedule() = default;
  // The rate of step 0, 1, …; a pure function of the step but for plateau, where it depends on the metrics so far.
  virtual double lr(std::int64_t step) const = 0;
  // After each validation, the same on every worker.
  virtual void observe(double /*metric*/) {}
  // What must be saved to go on exactly; empty for the pure ones. load() throws DataError naming what is missing.
  virtual std::vector<std::pair<std::string, double>> state() const { return {}; }
  virtual void load(const std::vector<std::pair<std::string, double>>& /*state*/) {}
};

struct ScheduleEntry {
  std::string_view name;
  std::string_view arguments;  // "milestone,…,gamma"; empty where there are none
  std::string_view summary;
  std::unique_ptr<RateSchedule> (*make)(const std::vector<double>& arguments, const ScheduleOptions& options);
};
std::span<const ScheduleEntry> schedules();

// From text such as "cosine", "step:30,60,0.1" or "plateau:5,0.5". Throws ConfigError that lists the names, or says
// what does not fit.
std::unique_ptr<RateSchedule> make_schedule(std::string_view text, const ScheduleOptions& options);

}  // namespace trireme::train

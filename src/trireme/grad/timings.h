// What the bucket planner is told: when gradients become ready, what an all-reduce costs here, and when to look again.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/sync/exchange/bucket_all_reduce.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::grad {

// To copy gradients in memory, of so many bytes, within reason.
double pack_s_per_byte(std::size_t most);

// Measures T(n) on buffers in the heap, up to `most` bytes, the way buckets will travel: `exchange` makes ready what
// is timed, an all-reduce where there is none. Collective; some milliseconds. The costs are this rank's.
using Rehearse = std::function<std::function<void()>(std::size_t bytes)>;
sync::BucketCosts measure_costs(Communicator& comm, sync::Turn turn, bool spare_core, std::size_t most,
                                Rehearse exchange = {});

// When each parameter's gradient was ready, over the steps that count.
class Timings {
 public:
  explicit Timings(std::size_t parameters) : ready_(parameters), last_(parameters) {}

  void begin_step() { observed_.clear(); }
  // Seconds since the step's first, without what exchanges in line took.
  void ready(std::size_t parameter, double seconds) {
    observed_.push_back(static_cast<int>(parameter));
    last_[parameter] = seconds;
  }
  void end_step(std::int64_t step);

  // Whether what this rank measured calls for another plan: the first time after kWarm + kCount steps, then whenever
  // backward has become a third longer or shorter than it was planned for.
  bool due(std::int64_t step) const;
  // Starts counting anew.
  void planned(std::int64_t step);

  // Parameters in the order their gradients came last time.
  const std::vector<int>& observed() const { return observed_; }
  // By parameter: the median of the last kCount steps.
  std::vector<float> medians() const;

  static constexpr int kWarm = 1, kCount = 5;

 private:
  std::vector<std::vector<float>> ready_;  // by parameter, the last kCount steps
  std::vector<double> last_;
  std::vector<int> observed_;
  std::int64_t planned_at_ = -1;  // the step; none yet: -1
  double span_ = 0, planned_span_ = 0;
};

}  // namespace trireme::grad

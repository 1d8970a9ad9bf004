// The workers of a run, as far as the training loop needs them to agree on something.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/collective/run/communicator.h"

namespace trireme::train {

// One per worker. All waits have the communicator's deadline.
class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Who writes what the run leaves: the first worker, or where that has died the first of those left. All know the same
  // after a sum.
  virtual int writer() const { return 0; }
  // Over all workers, when all have come. Collective.
  virtual void sum(std::span<double> numbers) = 0;
  // The same of a copy, without waiting for anybody where a group can; one at a time.
  virtual void start_sum(std::span<const double> numbers) {
    started_.assign(numbers.begin(), numbers.end());
    sum(started_);
  }
  // Until the next start_sum().
  virtual std::span<const double> await_sum() { return started_; }

  // For workers that go at their own pace: numbers that each goes to one of them. Parts only go up, and are the same
  // for everyone.
  struct Part {
    std::int64_t number = 0;
    std::int64_t begin = 0, first = 0, limit = 0;  // it has begin … limit − 1; from `first` on they are given out
  };
  // Collective, before the first is taken, which is of this part.
  virtual void start_giving(const Part& part) = 0;
  // From any thread. Nothing when all are gone, or somebody said stop.
  virtual std::optional<std::int64_t> take(const Part& part) = 0;
  virtual void stop_giving() = 0;
  // For workers that join later: this part is under way; none: training is over. By every worker.
  virtual void announce(const std::optional<Part>& part) { (void)part; }

 protected:
  std::vector<double> started_;
};

}  // namespace trireme::train

// What most strategies have in common: one learner per worker, and a report.
#pragma once
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/sync/strategy.h"
#include "trireme/sync/timed.h"

namespace trireme::sync {

// The time until the end of the scope is waited.
class Waiting : public Timed {
 public:
  explicit Waiting(Report& report) : Timed(report.wait_s) {}
};

// The one number that a strategy keeps; finite.
inline double only_of(std::span<const double> numbers) {
  if (numbers.size() != 1 || !std::isfinite(numbers[0])) throw DataError("a strategy's number is missing or broken");
  return numbers[0];
}

class OneLearner : public Strategy {
 public:
  explicit OneLearner(Communicator& world) : world_(world) {}

  void begin(std::span<const Replica> replicas) final {
    TRIREME_CHECK(replicas.size() == 1);
    TRIREME_CHECK(!traits().uses_gradient || replicas[0].gradient.size() == replicas[0].weights.size());
    weights_ = replicas[0].weights;
    gradient_ = replicas[0].gradient;
    start();
  }
  Report report() const override { return report_; }

 protected:
  // Once weights_ and gradient_ are known; collective.
  virtual void start() {}

  Communicator& world_;
  std::span<float> weights_;
  std::span<float> gradient_;
  Report report_;
};

}  // namespace trireme::sync

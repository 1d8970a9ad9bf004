// What most strategies have in common: one learner per worker, and a report.
#pragma once
#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/sync/strategy.h"

namespace trireme::sync {

// Adds the time until the end of the scope to what a worker has waited.
class Waiting {
 public:
  explicit Waiting(Report& report) : report_(report), begin_(now_seconds()) {}
  ~Waiting() { report_.wait_s += now_seconds() - begin_; }
  Waiting(const Waiting&) = delete;

 private:
  Report& report_;
  const double begin_;
};

class OneLearner : public Strategy {
 public:
  explicit OneLearner(Communicator& world) : world_(world) {}

  void begin(std::span<const Replica> replicas) final {
    TRIREME_CHECK(replicas.size() == 1);
    TRIREME_CHECK(!takes_gradient() || replicas[0].gradient.size() == replicas[0].weights.size());
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

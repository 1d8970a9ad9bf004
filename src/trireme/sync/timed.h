#pragma once
#include "trireme/base/clock.h"

namespace trireme::sync {

// Adds the time until the end of the scope, in seconds.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), begin_(now_seconds()) {}
  ~Timed() { sum_ += now_seconds() - begin_; }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  const double begin_;
};

}  // namespace trireme::sync

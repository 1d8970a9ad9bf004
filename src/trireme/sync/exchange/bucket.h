// The one thing that passes from gradients to whoever exchanges them: some flat memory, told apart by parameter, and
// the promise that it will hold what the step needs.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "trireme/collective/run/communicator.h"

namespace trireme::sync {

// Where a parameter's gradient lies in its bucket.
struct Segment {
  int parameter = 0;       // its number in the model, the same on every rank
  std::size_t offset = 0;  // in elements
  std::size_t count = 0;
  std::size_t rows = 1;  // of the parameter as a matrix: its first dimension
};

struct Bucket {
  int index = 0;  // buckets are handed over in the order of their indices, the same on every rank
  View data;      // in the transport's heap, where it has one
  std::span<const Segment> segments;
};

// A bucket on its way. The bucket's memory is the exchange's until wait() returns; then it holds the result.
class Pending {
 public:
  virtual ~Pending() = default;
  // At the latest at the deadline of the calls inside. Throws what they threw.
  virtual void wait() = 0;
  // When the exchange itself began and ended, in now_seconds(); after wait().
  struct Times {
    double begin = 0, end = 0;
  };
  virtual Times times() const = 0;
};

// One that was exchanged before its caller went on.
class Done : public Pending {
 public:
  explicit Done(Times times) : times_(times) {}
  void wait() override {}
  Times times() const override { return times_; }

 private:
  Times times_;
};

// Takes a full bucket and returns at once, or when all is done: its choice.
using BucketHook = std::function<std::unique_ptr<Pending>(const Bucket&)>;

}  // namespace trireme::sync

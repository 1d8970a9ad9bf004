// What happens to a full bucket of gradients: the one interface between gradients (grad/) and how they travel. A bucket
// is some flat memory, told apart by parameter, and the promise that it will hold what the step needs.
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

// Takes a full bucket and returns at once, or when all is done: its choice.
using BucketHook = std::function<std::unique_ptr<Pending>(const Bucket&)>;

// Whether buckets are exchanged on threads of their own.
enum class Turn {
  background,  // on threads of the exchange, while compute goes on
  in_line,     // on the caller's thread, before it goes on: where no core is spare
};

class BucketExchange {
 public:
  virtual ~BucketExchange() = default;
  // Takes a full bucket. Its memory is the exchange's until the result was waited for.
  virtual std::unique_ptr<Pending> start(const Bucket& bucket, Turn turn) = 0;
  // Whether it adds up (or averages) every number it is given, and nothing else: a few more may then travel along.
  virtual bool plain() const { return false; }
  // Where an exchange of so many bytes costs more than an all-reduce: one made ready, to be called and timed. Touches
  // no gradient. Collective, as are the calls. Empty: an all-reduce tells.
  virtual std::function<void()> rehearsal(std::size_t bytes) {
    (void)bytes;
    return {};
  }
};

}  // namespace trireme::sync

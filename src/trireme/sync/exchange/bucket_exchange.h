// What happens to a full bucket of gradients: the one interface between gradients (grad/) and how they travel.
#pragma once
#include <functional>
#include <memory>

#include "trireme/sync/exchange/bucket.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::sync {

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

// One that somebody gave as a function.
class HookExchange : public BucketExchange {
 public:
  explicit HookExchange(BucketHook hook) : hook_(std::move(hook)) {}
  std::unique_ptr<Pending> start(const Bucket& bucket, Turn) override { return hook_(bucket); }

 private:
  const BucketHook hook_;
};

}  // namespace trireme::sync

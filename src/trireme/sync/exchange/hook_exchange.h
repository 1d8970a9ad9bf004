#pragma once
#include <utility>

#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::sync {

// One that somebody gave as a function.
class HookExchange : public BucketExchange {
 public:
  explicit HookExchange(BucketHook hook) : hook_(std::move(hook)) {}
  std::unique_ptr<Pending> start(const Bucket& bucket, Turn) override { return hook_(bucket); }

 private:
  const BucketHook hook_;
};

}  // namespace trireme::sync

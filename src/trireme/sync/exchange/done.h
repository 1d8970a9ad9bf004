#pragma once
#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::sync {

// One that was exchanged before its caller went on.
class Done : public Pending {
 public:
  explicit Done(Times times) : times_(times) {}
  void wait() override {}
  Times times() const override { return times_; }

 private:
  Times times_;
};

}  // namespace trireme::sync

#include "trireme/sync/exchange/bucket_all_reduce.h"

#include "trireme/base/clock.h"
#include "trireme/sync/exchange/done.h"

namespace trireme::sync {
namespace {

class Started : public Pending {
 public:
  explicit Started(Work work) : work_(std::move(work)) {}
  void wait() override { work_.wait(); }
  Times times() const override {
    auto [begin, end] = work_.times();
    return {begin, end};
  }

 private:
  Work work_;
};

}  // namespace

std::unique_ptr<Pending> BucketAllReduce::start(const Bucket& bucket, Turn turn) {
  if (turn == Turn::background) return std::make_unique<Started>(comm_.async().all_reduce(bucket.data, op_));
  const double begin = now_seconds();
  comm_.all_reduce(bucket.data, op_);
  return std::make_unique<Done>(Pending::Times{begin, now_seconds()});
}

}  // namespace trireme::sync

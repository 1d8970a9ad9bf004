#include "trireme/sync/all_reduce.h"

#include "trireme/base/clock.h"

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

BucketHook all_reduce(Communicator& comm, Turn turn, Op op) {
  if (turn == Turn::background) {
    return [&comm, op](const Bucket& bucket) -> std::unique_ptr<Pending> {
      return std::make_unique<Started>(comm.async().all_reduce(bucket.data, op));
    };
  }
  return [&comm, op](const Bucket& bucket) -> std::unique_ptr<Pending> {
    double begin = now_seconds();
    comm.all_reduce(bucket.data, op);
    return std::make_unique<Done>(Pending::Times{begin, now_seconds()});
  };
}

}  // namespace trireme::sync

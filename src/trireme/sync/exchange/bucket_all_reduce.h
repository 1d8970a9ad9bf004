// The plain exchange: the mean (or the sum) of a bucket over all ranks, by one all-reduce.
#pragma once
#include "trireme/sync/exchange/bucket_exchange.h"

namespace trireme::sync {

class BucketAllReduce : public BucketExchange {
 public:
  // `comm` must outlive it and what it returns.
  explicit BucketAllReduce(Communicator& comm, Op op = Op::avg) : comm_(comm), op_(op) {}
  std::unique_ptr<Pending> start(const Bucket& bucket, Turn turn) override;
  bool plain() const override { return true; }

 private:
  Communicator& comm_;
  const Op op_;
};

}  // namespace trireme::sync

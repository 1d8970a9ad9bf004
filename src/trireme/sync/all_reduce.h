// The plain exchange: the mean (or the sum) of a bucket over all ranks, by one all-reduce.
#pragma once
#include "trireme/sync/bucket.h"

namespace trireme::sync {

enum class Turn {
  background,  // on the communicator's lanes, while compute goes on
  in_line,     // on the caller's thread, before it goes on: where no core is spare
};

// `comm` must outlive the hook and what it returns.
BucketHook all_reduce(Communicator& comm, Turn turn, Op op = Op::avg);

}  // namespace trireme::sync

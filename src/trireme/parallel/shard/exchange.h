// The collectives of sharding: in the background or in line, and what they cost.
#pragma once
#include <cstdint>
#include <utility>

#include "trireme/base/clock.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/sync/exchange/bucket_all_reduce.h"

namespace trireme::parallel {

// What one step cost this worker.
struct ShardTimes {
  double communication = 0;           // seconds of all exchanges, overlapped or not
  double exposed = 0;                 // seconds that compute waited for them
  std::uint64_t gathered_bytes = 0;   // of whole weights that were put together
  std::uint64_t scattered_bytes = 0;  // of whole gradients that were added up

  void add(const ShardTimes& more) {
    communication += more.communication;
    exposed += more.exposed;
    gathered_bytes += more.gathered_bytes;
    scattered_bytes += more.scattered_bytes;
  }
};

// Belongs to one thread. The buffers of what was started are the communicator's until wait() returns.
class Exchange {
 public:
  Exchange(Communicator& group, sync::Turn turn) : comm_(group), background_(turn == sync::Turn::background) {}

  Communicator& comm() { return comm_; }
  bool background() const { return background_; }

  Work all_gather(ConstView in, View out) {
    times_.gathered_bytes += out.count * size_of(out.dtype);
    if (background_) return comm_.async().all_gather(in, out);
    const double begin = now_seconds();
    comm_.all_gather(in, out);
    add_wait(now_seconds() - begin);
    return {};
  }
  Work reduce_scatter(ConstView in, View out, Op op) {
    times_.scattered_bytes += in.count * size_of(in.dtype);
    if (background_) return comm_.async().reduce_scatter(in, out, op);
    const double begin = now_seconds();
    comm_.reduce_scatter(in, out, op);
    add_wait(now_seconds() - begin);
    return {};
  }
  // Returns when it is done.
  void wait(Work& work) {
    if (!background_) return;
    const double begin = now_seconds();
    work.wait();
    times_.exposed += now_seconds() - begin;
    const auto ran = work.times();
    times_.communication += ran.end - ran.begin;
    work = {};
  }

  // An exchange that compute waited for took this long.
  void add_wait(double seconds) {
    times_.communication += seconds;
    times_.exposed += seconds;
  }
  // Since the last call of this.
  ShardTimes take_times() { return std::exchange(times_, {}); }

 private:
  Communicator& comm_;
  const bool background_;
  ShardTimes times_;
};

}  // namespace trireme::parallel

// Dissemination barrier. Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988. P ranks.
//   round k = 0…⌈log2 P⌉−1: signal rank i + 2^k, wait for the signal of rank i − 2^k.
// After round k a rank has heard, through others, of the 2^(k+1) ranks before it. Cost: ⌈log2 P⌉·α.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

Schedule dissemination_barrier(const Call& call) {
  const int i = call.rank, P = call.ranks;
  Schedule barrier;
  barrier.rounds = ceil_log2(P);
  barrier.fill = [=](int k, Round& out) {
    send_signal(out, wrap(i + (1 << k), P));
    recv_signal(out, wrap(i - (1 << k), P));
  };
  return barrier;
}

}  // namespace trireme::schedules

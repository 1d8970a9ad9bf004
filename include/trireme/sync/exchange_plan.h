// What a worker exchanges in a step, as data: the same decisions that its strategy takes, for whoever wants to know
// without running it. One function in each strategy's file; pure, so that any rank's can be asked for anywhere.
//
// In a step of the training loop the moments come in the order of Moment. At each of them a worker first does its
// passes that are not late, then starts what starts there, then waits for what is waited for there (what it started
// just now, or so many steps ago, and what was sent to it), then does its late passes.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/ps/clock.h"

namespace trireme::sync {

enum class Moment : std::uint8_t { before_forward, in_backward, after_backward, after_step };

// Whose step, and which. `step` counts this worker's, from 0.
struct ExchangePlanAt {
  int rank = 0, ranks = 1;
  std::int64_t step = 0, steps_per_epoch = 1, total_steps = 1;
  std::uint64_t seed = 1;
};

struct Exchange {
  enum class What : std::uint8_t {
    buckets,    // the gradients' mean over all, bucket by bucket as they become ready
    mean,       // of one flat vector over all
    send,       // to `peer`, who waits for it at the same moment of its own step of this number
    ask,        // `peer` answers at once, with as much as it was sent, whatever it is doing
    push_pull,  // a gradient to the servers, and weights back once `clock` allows
    read_on,    // weights are pulled from the servers again and again from start to wait
    shared,     // weights are one memory for all: read at start, changed at wait; nothing is sent
    pass        // nothing is sent: this worker reads or writes `touched` vectors of the model's length, copies `copied`
  };
  enum class Of : std::uint8_t { gradient, model, number };  // number: 8 bytes

  What what = What::mean;
  Of of = Of::model;
  Moment start = Moment::after_step;
  Moment wait = Moment::after_step;
  int later = 0;  // waited for so many steps after it was started
  int peer = -1;
  ps::Consistency clock;
  double touched = 0, copied = 0;
  bool late = false;  // of a pass: after what is waited for at that moment

  bool operator==(const Exchange&) const = default;
};
using ExchangePlan = std::vector<Exchange>;

// ---- How plans are written down ----

inline Exchange mean(Exchange::Of of, Moment start, Moment wait, int later = 0) {
  return {.what = Exchange::What::mean, .of = of, .start = start, .wait = wait, .later = later};
}
inline Exchange send(Exchange::Of of, int peer, Moment start, Moment wait) {
  return {.what = Exchange::What::send, .of = of, .start = start, .wait = wait, .peer = peer};
}
inline Exchange pass(Moment at, double touched) {
  return {.what = Exchange::What::pass, .start = at, .wait = at, .touched = touched};
}
inline Exchange copies(Moment at, double copied) {
  return {.what = Exchange::What::pass, .start = at, .wait = at, .copied = copied};
}
inline Exchange late(Exchange one) {
  one.late = true;
  return one;
}
// What the training loop does for strategies that take gradients: it copies them to one flat vector.
inline Exchange lay_out() {
  auto one = copies(Moment::after_backward, 1);
  one.of = Exchange::Of::gradient;
  return one;
}

// Whether something that is done every `period` steps is done after this one.
constexpr bool is_last_of(std::int64_t period, std::int64_t step) { return (step + 1) % period == 0; }

}  // namespace trireme::sync

// What a rank does while it waits: looks at the clock, at the world and at the peer it waits for, and when the
// deadline passes says who is late.
#pragma once
#include <optional>

#include "trireme/base/clock.h"
#include "trireme/net/transport.h"

namespace trireme::net {

class Watch {
 public:
  // All outlive the watch. `call` is what this rank is in. The clock is first read when a wait has lasted a little, so
  // that a call which need not wait does not pay for it.
  Watch(Transport& transport, const Channel& channel, const CallId& call, Duration timeout)
      : transport_(transport), channel_(channel), call_(call), timeout_(timeout) {}

  // Throws PeerLost, Aborted or Timeout if there is no point in waiting for `member` of the channel (−1: for no one in
  // particular) any longer. Who is lost is told at the second look: it may have done its part, and left, after the
  // caller had looked for that and before the first. The caller looks again in between.
  void operator()(int member);

 private:
  [[noreturn]] void give_up(int member) const;

  Transport& transport_;
  const Channel& channel_;
  const CallId& call_;
  Duration timeout_;
  std::optional<Deadline> deadline_;
  static constexpr int kNobody = -2;
  int lost_ = kNobody;  // the member for whom somebody was lost, at the last look
};

}  // namespace trireme::net

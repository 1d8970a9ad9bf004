#include "trireme/net/watch.h"

#include <fmt/format.h>

#include <utility>

#include "trireme/base/error.h"
#include "trireme/net/call.h"

namespace trireme::net {

void Watch::operator()(int member) {
  if (!deadline_) deadline_ = Deadline::in(timeout_);
  try {
    transport_.check_peer(member < 0 ? -1 : channel_.world_rank(member));
    lost_ = kNobody;
  } catch (const PeerLost&) {
    if (std::exchange(lost_, member) == member) throw;
  }
  if (deadline_->passed()) give_up(member);
}

// Names everyone who is not in the call; if all are, the one waited for.
void Watch::give_up(int member) const {
  auto states = transport_.survey(Deadline::in_seconds(0.5));
  transport_.check();
  std::string late;
  int culprit = -1;
  for (int i = 0; i < channel_.size(); ++i) {
    const int rank = channel_.world_rank(i);
    if (i == channel_.rank()) continue;
    const auto& state = states[rank];
    std::string why;
    if (state.life == PeerState::Life::dead) {
      why = "is gone";
    } else if (state.life == PeerState::Life::silent) {
      why = "does not answer (stopped or cut off)";
    } else if (!state.in_call) {
      why = fmt::format("has not called it; its last call was {}", describe(state.call));
    } else if (!(state.call == call_)) {
      why = fmt::format("is in {} instead", describe(state.call));
    } else {
      continue;
    }
    if (culprit < 0) culprit = rank;
    late += fmt::format("{}rank {} {}", late.empty() ? "" : "; ", rank, why);
  }
  if (culprit < 0 && member >= 0) {
    culprit = channel_.world_rank(member);
    late = fmt::format("rank {} is in it too but has not sent what rank {} waits for", culprit, transport_.rank());
  }
  throw Timeout(culprit, fmt::format("rank {}: {} timed out after {:g} s: {}", transport_.rank(), describe(call_),
                                     deadline_->span_seconds(), late.empty() ? "nobody is late" : late));
}

}  // namespace trireme::net

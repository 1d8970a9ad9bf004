#include "trireme/net/call.h"

#include <fmt/format.h>

#include <iterator>

#include "trireme/base/dtype.h"

namespace trireme::net {

std::string describe(const CallId& call) {
  if (call.what == CallId::kNone) return "nothing yet";
  if (call.what == CallId::kPointToPoint) return fmt::format("a message with tag {}", call.sequence);
  if (call.what >= std::size(kCallNames)) return fmt::format("unknown call {}", call.what);
  auto text = fmt::format("{} #{}", kCallNames[call.what], call.sequence);
  std::string_view what = kCallNames[call.what];
  if (what == "barrier") return text;
  if (call.dtype < kDTypes.size()) text += fmt::format(" of {} {}", call.count, name(kDTypes[call.dtype]));
  if (what.find("reduce") != what.npos && call.op < kOps.size()) text += fmt::format(" ({})", name(kOps[call.op]));
  if (what == "reduce") text += fmt::format(" to rank {}", call.root);
  if (what == "gather") text += fmt::format(" to rank {}", call.root);
  if (what == "broadcast" || what == "scatter") text += fmt::format(" from rank {}", call.root);
  return text;
}

std::string describe_mismatch(int rank, const CallId& call, std::size_t length, int peer, const CallId& peer_call,
                              std::size_t peer_length) {
  if (call.what == CallId::kPointToPoint && peer_call.what == CallId::kPointToPoint) {
    return fmt::format("rank {} expects {} of {} bytes from rank {}, which sent {} of {} bytes", rank, describe(call),
                       length, peer, describe(peer_call), peer_length);
  }
  if (call == peer_call) {
    return fmt::format("ranks {} and {} both called {}, but one expects a message of {} bytes where the other sent {}",
                       rank, peer, describe(call), length, peer_length);
  }
  auto same_words = describe(call) == describe(peer_call) ? fmt::format(", by different algorithms") : "";
  return fmt::format(
      "rank {} called {}, but rank {} called {}{}: every rank must make the same calls in the same order", rank,
      describe(call), peer, describe(peer_call), same_words);
}

}  // namespace trireme::net

// A call in words, for error messages.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "trireme/net/transport.h"

namespace trireme::net {

// The collectives by number, in the order of enum class Collective (collective/schedule.h).
inline constexpr std::string_view kCallNames[] = {"broadcast",      "scatter",    "gather",     "reduce", "all-gather",
                                                  "reduce-scatter", "all-reduce", "all-to-all", "barrier"};

// "all-reduce #17 of 100 f32 (sum)", "broadcast #3 of 50 i64 from rank 2", "a message with tag 7".
std::string describe(const CallId& call);

// "rank 0 called all-reduce #17 of 100 f32 (sum), but rank 2 called …": both sides of a disagreement. World ranks;
// lengths in bytes of the messages that met.
std::string describe_mismatch(int rank, const CallId& call, std::size_t length, int peer, const CallId& peer_call,
                              std::size_t peer_length);

}  // namespace trireme::net

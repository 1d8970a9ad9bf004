// Which receive gets which send, for the checker.
#pragma once
#include <span>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme::checking {

// One message of a round: a step of the sender and one of the receiver, by index.
struct Message {
  int sender, send;
  int receiver, receive;
};

// Matches the sends and receives of one round, FIFO per ordered pair of ranks. False when they do not match one to
// one; lengths are not compared.
bool match(std::span<const Round> rounds, std::vector<Message>& out);

// For schedules of which some round does not match: throws the Violation that says why. A message may be missing; or
// be sent in one round and received in another, which may or may not be a deadlock.
[[noreturn]] void explain_mismatch(std::span<const Schedule> schedules);

}  // namespace trireme::checking

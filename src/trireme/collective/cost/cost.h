// What a schedule costs, counted from the schedule itself: every rank's rounds are read one at a time and none is
// kept, so time is proportional to the number of steps and memory to the number of ranks.
#pragma once
#include <cstdint>

#include "trireme/base/dtype.h"
#include "trireme/collective/cost/link_model.h"
#include "trireme/collective/schedule.h"

namespace trireme {

// In a shared schedule a rank's reads count as received from the peer, and what it stores into a peer as sent.
struct Count {
  int wires = 0;                      // distinct peers of a rank; the most over ranks, as all maxima below
  int rounds = 0;                     // in which anybody communicates
  std::uint64_t bytes_per_round = 0;  // from one rank to one peer in one round
  std::uint64_t sent_per_round = 0;   // from one rank to all its peers in one round
  std::uint64_t total_bytes = 0;      // over all ranks and rounds
  std::uint64_t max_sent = 0;         // by one rank
  std::uint64_t max_received = 0;     // by one rank
  std::uint64_t max_reduced = 0;      // by one rank: bytes added into others
  // Shared schedules only, over all ranks: traffic between cores and memory.
  std::uint64_t loaded = 0;
  std::uint64_t stored = 0;
};

// `shape.rank` is not looked at: every rank is read. Throws Error for a schedule in which some send has no receive of
// the same size in the same round.
Count count_schedule(const Algorithm& algorithm, const Call& shape, std::size_t element_bytes);

// Seconds until the last rank is done, all starting at once. A message runs when both sides have come to its round and
// takes model.message(bytes); what one rank sends to one peer in one round is one message. A round ends for a rank
// when its messages have ended and what it received is reduced; nobody waits for ranks it does not talk to. With one
// wire, a rank's sends of a round follow each other in the order in which they can begin, and so do its receives; a
// message waits for its turn on both sides.
// A shared schedule costs a synchronization before each round that touches peers' memory, and one after the last
// unless only stages are touched, plus what the busiest rank moves. Copies from input to output are free: see
// schedule.h. What was measured of whole calls corrects the result.
double predict(const Algorithm& algorithm, const Call& shape, DType type, const LinkModel& model);

// Bytes of a rank's larger buffer in a call.
double call_bytes(const Call& shape, DType type);

}  // namespace trireme

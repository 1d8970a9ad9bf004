// Bruck's all-to-all. Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", 1997. i is this rank, P the number of ranks, n bytes per rank's input.
//   B[j] starts as the block for rank i+j.
//   round k = 0…⌈log2 P⌉−1: all B[j] whose j has bit k go, packed into one message, to rank i + 2^k, and are replaced
//                           by those of rank i − 2^k. Block j so travels j ranks in all.
//   At the end B[j] is the block from rank i−j.
// Cost: ⌈log2 P⌉·(α + n/2·β): few messages, more bytes than round-robin's (P−1)·α + (P−1)/P·n·β.
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/collective/schedules/steps.h"

namespace trireme::schedules {

namespace {

// Where things lie in scratch: B, then the packed blocks that leave, then those that arrive.
struct Rooms {
  std::size_t count;
  int P;
  Slice B(int j) const { return scratch(j * count, count); }
  Slice leaving(int place) const { return scratch((P + place) * count, count); }
  Slice arriving(int place) const { return scratch((P + P / 2 + place) * count, count); }
};

// Calls act(j, place in the message) for the blocks that move in round k; returns how many there are, P/2 at most.
template <class Act>
int for_moving(int P, int k, Act act) {
  int place = 0;
  for (int j = 0; j < P; ++j)
    if (j >> k & 1) act(j, place++);
  return place;
}

}  // namespace

Schedule bruck_all_to_all(const Call& call) {
  const int i = call.rank, P = call.ranks, rounds = ceil_log2(P);
  const Partition in = blocks_of(Buffer::input, call), to = blocks_of(Buffer::output, call);
  const Rooms rooms{call.count, P};
  Schedule bruck;
  bruck.rounds = rounds + 1;
  bruck.scratch = (P + P / 2 * 2) * call.count;
  bruck.fill = [=](int k, Round& out) {
    if (k == 0)
      for (int j = 0; j < P; ++j) copy(out, in[wrap(i + j, P)], rooms.B(j));
    else
      for_moving(P, k - 1, [&](int j, int place) { copy(out, rooms.arriving(place), rooms.B(j)); });
    if (k == rounds) {
      for (int j = 0; j < P; ++j) copy(out, rooms.B(j), to[wrap(i - j, P)]);
      return;
    }
    const int moving = for_moving(P, k, [&](int j, int place) { copy(out, rooms.B(j), rooms.leaving(place)); });
    Slice leaving = rooms.leaving(0), arriving = rooms.arriving(0);
    leaving.count = arriving.count = moving * call.count;
    send(out, wrap(i + (1 << k), P), leaving);
    recv(out, wrap(i - (1 << k), P), arriving);
  };
  return bruck;
}

}  // namespace trireme::schedules

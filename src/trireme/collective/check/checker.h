// Proves schedules by executing all ranks of a call on symbols instead of numbers. What is proven of a call:
//   – every rank ends with exactly what the collective promises: for sums, every rank's contribution to that element
//     exactly once (in the canonical order where the algorithm claims it); for moves, exactly the right element;
//     nothing outside the blocks is touched; after a barrier everyone has heard of everyone;
//   – messages match: every receive has a send in the same round of the peer, in FIFO order per pair, equally long.
//     Then there is no deadlock, with or without buffering: a rank in the earliest round still running finds all its
//     peers there or beyond, hence all messages of that round posted. If they do not match, a simulation tells a
//     message that is missing from a deadlock;
//   – no race: within a round no receive touches what another send or receive of the rank uses; in shared schedules
//     no rank writes what another reads or writes;
//   – input is never written, nothing is read before it was written, every slice lies within its buffer.
// All of it with input and output apart, and in place where schedule.h allows it.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme {

// What is wrong, in one line naming algorithm, ranks, count, rank, round and element; nothing if the call is proven.
// `call.rank` is ignored: all ranks are executed.
std::optional<std::string> check(const Algorithm& algorithm, const Call& call);
// The same for the given schedules of ranks 0…P−1 instead of the algorithm's own.
std::optional<std::string> check(const Algorithm& algorithm, const Call& call, std::span<const Schedule> schedules);

// The calls that `trireme check` and the tests prove for one collective and number of ranks: counts around 0, 1, P
// and beyond, blocks with and without gaps, roots at both ends and in the middle.
std::vector<Call> calls_to_check(Collective what, int ranks);
// The same in words: "0 1 P−1 P 2P+3".
std::string_view counts_to_check(Collective what);

// Memory and time grow with the cube of the ranks.
inline constexpr int kMostRanksToCheck = 128;

// What came of proving all calls_to_check for one algorithm. The first error ends it.
struct Proof {
  std::vector<int> ranks;  // proven
  int cases = 0;           // calls proven
  int rounds = 0;          // of the last call
  std::optional<std::string> error;
};
// `progress` is told each number of ranks before its calls are checked; it may be empty.
Proof prove(const Algorithm& algorithm, std::span<const int> ranks,
            const std::function<void(int ranks)>& progress = {});

}  // namespace trireme

// How long a collective takes on a network: its schedule, the one that the runtime executes, played in time.
//
// A message begins when both ranks have come to its round. A round ends for a rank when its messages have ended and
// what it received is reduced; nobody waits for ranks it does not talk to. Three tiers, each exact where it is taken:
// closed forms where all begin at once on equal links; max-plus where no link carries two messages at a time; flows,
// fair shares of every link, elsewhere.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "trireme/cluster/network.h"
#include "trireme/cluster/sim/traffic.h"
#include "trireme/collective/schedule.h"

namespace trireme::cluster {

struct Played {
  Tier tier = Tier::max_plus;
  double end_s = 0;            // of the last rank
  std::uint64_t messages = 0;  // between ranks
};

// Fills ends from begins, by rank: shape.ranks each, and may be one array. Adds to `traffic`. `observe` sees every
// message, in no special order; algorithms on shared memory have none. `shape.rank` is not looked at. Throws
// ConfigError for an algorithm that needs shared memory which this network has not.
Played play(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes,
            std::span<const double> begins, std::span<double> ends, Traffic* traffic = nullptr,
            const Observer& observe = {});
// The same by a tier of the caller's choice, for checking one against the other. Throws ConfigError where it does not
// apply.
Played play_by(Tier tier, const Network& network, const Algorithm& algorithm, const Call& shape,
               std::size_t element_bytes, std::span<const double> begins, std::span<double> ends,
               Traffic* traffic = nullptr, const Observer& observe = {});

// All begin at once: seconds until the last is done.
double play(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes);

// The same, coarsely: on many ranks rounds are taken to go in step.
double play_rounds(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes);

// `auto`: where ranks share memory what the runtime takes; elsewhere the fastest here. Remembered by quarters of an
// octave of sizes, as the runtime does. `coarse`: the fastest by play_rounds. Any thread.
const Algorithm& pick_algorithm(const Network& network, Collective what, std::size_t count, std::size_t element_bytes,
                                int ranks, bool coarse = false);

}  // namespace trireme::cluster

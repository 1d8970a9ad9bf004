// What the rounds of a shift schedule put on the links, without going through them rank by rank.
#include <map>

#include "trireme/cluster/sim/tiers.h"

namespace trireme::cluster {

void count_shifts(const Playing& playing, const Schedule& schedule) {
  const int P = playing.shape.ranks;
  const auto turn = [P](int x) { return (x % P + P) % P; };
  const auto larger = static_cast<int>(schedule.parts.count % static_cast<std::size_t>(P));
  const std::uint64_t lesser_bytes = schedule.parts.count / static_cast<std::size_t>(P) * playing.element;
  std::map<int, std::map<int, std::uint64_t>> rounds;  // by distance and offset of the part
  for (int k = 0; k < schedule.rounds; ++k) {
    const Shift shift = schedule.shift(k);
    if (turn(shift.distance) != 0) ++rounds[turn(shift.distance)][turn(shift.part)];
  }
  std::vector<std::uint64_t> times;  // rounds by offset
  for (const auto& [distance, by_part] : rounds) {
    std::uint64_t all = 0, large = 0;  // rounds; those in which rank r sends a larger part
    times.assign(static_cast<std::size_t>(P), 0);
    for (const auto& [part, n] : by_part) {
      times[part] = n;
      all += n;
      large += part < larger ? n : 0;
    }
    // Rank r sends a larger part in the rounds whose offset is in [−r, larger − r): a window that slides.
    for (int r = 0; r < P; ++r) {
      const int to = (r + distance) % P;
      if (lesser_bytes > 0) playing.traffic->add(playing.network, r, to, lesser_bytes, all - large);
      if (large > 0) playing.traffic->add(playing.network, r, to, lesser_bytes + playing.element, large);
      large += times[turn(-r - 1)];
      large -= times[turn(larger - r - 1)];
    }
  }
}

}  // namespace trireme::cluster

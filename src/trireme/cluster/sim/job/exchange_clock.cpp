#include "trireme/cluster/sim/job/exchange_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "trireme/base/error.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/least_sent.h"

namespace trireme::cluster {
namespace {

bool all_equal(std::span<const double> times) {
  return std::ranges::all_of(times, [&](double time) { return time == times[0]; });
}

const Algorithm* of_this_name(Collective what, std::string_view name) {
  for (const Algorithm* one : algorithms_for(what)) {
    if (one->name == name) return one;
  }
  return nullptr;
}

}  // namespace

ExchangeClock::ExchangeClock(const Network& network, std::string_view algorithm, Observer observe, bool coarse)
    : network_(network), algorithm_(algorithm), observe_(std::move(observe)), coarse_(coarse) {
  if (algorithm_ == "auto") return;
  (void)find_algorithm(Collective::all_reduce, algorithm_);  // the error lists what there is
}

Call ExchangeClock::call_of(const Leg& leg) const { return {leg.what, 0, network_.ranks(), 0, leg.count, leg.count}; }

const Algorithm& ExchangeClock::algorithm_for(const Leg& leg) const {
  if (algorithm_ != "auto") {
    if (const auto* named = of_this_name(leg.what, algorithm_)) return *named;
  }
  return pick_algorithm(network_, leg.what, leg.count, leg.element_bytes, network_.ranks(), coarse_);
}

// As Communicator::bytes_sent counts: of calls in shared memory the least that messages would have moved. So many ranks
// that reading all their rounds would take long are counted alike.
double ExchangeClock::bytes_of_each(const Leg& leg) const {
  constexpr double kMany = 256;
  const double ranks = network_.ranks();
  if (!coarse_ && ranks <= kMany) {
    const auto& algorithm = algorithm_for(leg);
    if (!algorithm.shared) {
      return static_cast<double>(count_schedule(algorithm, call_of(leg), leg.element_bytes).total_bytes) / ranks;
    }
  }
  return static_cast<double>(least_sent(leg.what, leg.count * leg.element_bytes, 0, 0, network_.ranks()));
}

// Between 1, 1.5, 2, 3, 4, 6, … elements.
double ExchangeClock::coarse_s(const Leg& leg) const {
  const auto at = [&](std::size_t count) {
    const Leg whole{leg.what, count, leg.element_bytes, 0};
    return play_rounds(network_, algorithm_for(whole), call_of(whole), leg.element_bytes);
  };
  const std::size_t octave = std::bit_floor(leg.count), middle = octave + octave / 2;
  if (leg.count == octave || leg.count == middle) return at(leg.count);
  const std::size_t below = leg.count < middle ? octave : middle, above = leg.count < middle ? middle : 2 * octave;
  const double from = at(below);
  return from + (at(above) - from) * static_cast<double>(leg.count - below) / static_cast<double>(above - below);
}

const ExchangeClock::Known& ExchangeClock::known(const Leg& leg) {
  auto [found, fresh] = known_.try_emplace(Key{leg.what, leg.count, leg.element_bytes});
  auto& one = found->second;
  if (!fresh) return one;
  if (coarse_) {
    one.longest = coarse_s(leg);
    one.ends.assign(1, one.longest);
    one.sent = bytes_of_each(leg);
    return one;
  }
  const std::vector<double> begins(static_cast<std::size_t>(network_.ranks()), 0.0);
  one.ends.resize(begins.size());
  one.played =
      play(network_, algorithm_for(leg), call_of(leg), leg.element_bytes, begins, one.ends, &one.traffic, Observer());
  one.longest = *std::ranges::max_element(one.ends);
  one.sent = bytes_of_each(leg);
  if (all_equal(one.ends)) one.ends.resize(1);
  return one;
}

void ExchangeClock::run(const Leg& leg, std::span<double> times) {
  for (double& time : times) time += leg.before_s;
  if (network_.ranks() == 1 || leg.count == 0) return;
  const auto& one = known(leg);
  sent_ += one.sent;
  Played played;
  if (coarse_) {
    std::ranges::fill(times, *std::ranges::max_element(times) + one.longest);
    played.tier = network_.shared() ? Tier::flows : Tier::max_plus;
  } else if (!observe_ && all_equal(times)) {
    for (std::size_t r = 0; r < times.size(); ++r) times[r] += one.ends.size() == 1 ? one.ends[0] : one.ends[r];
    traffic_.add(one.traffic);
    played = one.played;
  } else {
    const std::vector<double> begins(times.begin(), times.end());
    played = play(network_, algorithm_for(leg), call_of(leg), leg.element_bytes, begins, times, &traffic_, observe_);
  }
  messages_ += played.messages;
  tier_ = std::max(tier_, played.tier);
}

void ExchangeClock::run(const Legs& legs, std::span<double> times) {
  for (const Leg& leg : legs.legs) run(leg, times);
  for (double& time : times) time += legs.after_s;
}

double ExchangeClock::alone(const Leg& leg) { return network_.ranks() == 1 || leg.count == 0 ? 0 : known(leg).longest; }

double ExchangeClock::alone(const Legs& legs) {
  double seconds = legs.coding_s;
  for (const Leg& leg : legs.legs) seconds += alone(leg);
  return seconds;
}

double ExchangeClock::latency(const Legs& legs) {
  if (network_.ranks() == 1) return 0;
  double seconds = 0;
  for (const Leg& leg : legs.legs) {
    if (leg.count == 0) continue;
    const Leg smallest{leg.what, leg.what == Collective::all_reduce ? static_cast<std::size_t>(network_.ranks()) : 1, 1,
                       0};
    const auto& algorithm = algorithm_for(coarse_ ? smallest : leg);
    const double alone = coarse_ ? play_rounds(network_, algorithm, call_of(smallest), smallest.element_bytes)
                                 : play(network_, algorithm, call_of(smallest), smallest.element_bytes);
    seconds += std::min(known(leg).longest, alone);
  }
  return seconds;
}

}  // namespace trireme::cluster

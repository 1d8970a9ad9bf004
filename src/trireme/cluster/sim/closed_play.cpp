// Closed forms as a tier: where all ranks begin at once, links are equal and the schedule treats all ranks alike, all
// end together when the textbook says.
//
// Ring and round-robin send one part of n/P bytes in every round. Where P does not divide n the larger parts decide: on
// the way of one of them, or at its owner, every round is one of a larger part. The last rank ends exactly then; ranks
// that have only smaller ones, a few bytes earlier, are taken to end with it.
#include <algorithm>
#include <bit>

#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/formulas.h"

namespace trireme::cluster {
namespace {

bool begin_at_once(std::span<const double> begins) {
  return std::ranges::all_of(begins, [&](double begin) { return begin == begins.front(); });
}

// α, β as the form wants them; none where it does not apply.
std::optional<Symbols> symbols_of(const Playing& playing) {
  const Call& shape = playing.shape;
  const Network& network = playing.network;
  const auto P = static_cast<std::size_t>(shape.ranks);
  const bool blocks = has_blocks(shape.what);
  std::size_t elements = blocks ? shape.count * P : shape.count;
  Symbols symbols{shape.ranks, 0, 0, 0, network.node(0).inside.gamma};
  // Every rank does the same in every round: of any number of ranks, or of a power of two.
  const Pattern pattern = playing.algorithm.pattern;
  if (pattern == Pattern::one_part) {
    elements = (elements + P - 1) / P * P;
    symbols.alpha = network.message(0, 1, static_cast<double>(elements / P * playing.element));
  } else {
    const Curve* line = network.line();
    const bool even = std::has_single_bit(P) && (blocks || elements % P == 0);
    const bool doubling = pattern == Pattern::folding || pattern == Pattern::circle;
    if (!doubling || !even || line == nullptr) return std::nullopt;
    symbols.alpha = line->start;
    symbols.beta = line->slope;
  }
  symbols.bytes = static_cast<double>(elements * playing.element);
  return symbols;
}

}  // namespace

std::optional<Played> play_closed_form(const Playing& playing, const Schedule& schedule) {
  const Call& shape = playing.shape;
  const Network& network = playing.network;
  const bool empty = shape.count == 0 && shape.what != Collective::barrier;
  if (shape.ranks < 2 || empty || playing.observe || !network.uniform() || network.node(0).inside.copy > 0) {
    return std::nullopt;
  }
  if (playing.traffic != nullptr && !schedule.shift) return std::nullopt;
  if (!begin_at_once(playing.begins)) return std::nullopt;
  const auto symbols = symbols_of(playing);
  const auto form = symbols ? closed_form(shape.what, playing.algorithm.name, *symbols) : std::nullopt;
  if (!form) return std::nullopt;
  const double end = playing.begins.front() + form->time_one.value;
  std::fill(playing.ends.begin(), playing.ends.end(), end);
  if (playing.traffic != nullptr) count_shifts(playing, schedule);
  const auto rounds = static_cast<std::uint64_t>(form->rounds.value + .5);
  auto messages = rounds * static_cast<std::uint64_t>(shape.ranks);
  // Parts of no element are not sent.
  if (schedule.shift && schedule.parts.count < static_cast<std::size_t>(shape.ranks)) {
    messages = rounds * schedule.parts.count;
  }
  return Played{Tier::closed_form, end, messages};
}

}  // namespace trireme::cluster

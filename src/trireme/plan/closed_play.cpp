// Closed forms as a tier: where all ranks begin at once, links are equal and straight lines, and the schedule treats
// all ranks alike, all end together when the textbook says.
#include <algorithm>
#include <array>
#include <bit>

#include "trireme/collective/formulas.h"
#include "trireme/plan/tiers.h"

namespace trireme::plan {
namespace {

// Those in which every rank does the same in every round; for powers of two where `doubling`.
struct Symmetric {
  std::string_view name;
  bool doubling;
};
constexpr std::array kSymmetric{Symmetric{"ring", false},     Symmetric{"round-robin", false},
                                Symmetric{"butterfly", true}, Symmetric{"halving-doubling", true},
                                Symmetric{"halving", true},   Symmetric{"circulant", true},
                                Symmetric{"bruck", true},     Symmetric{"dissemination", true}};

bool applies(const Playing& playing) {
  const Call& shape = playing.shape;
  const auto found = std::ranges::find(kSymmetric, playing.algorithm.name, &Symmetric::name);
  if (found == kSymmetric.end() || playing.observe || playing.traffic != nullptr || shape.ranks < 2) return false;
  if (found->doubling && !std::has_single_bit(static_cast<unsigned>(shape.ranks))) return false;
  if (!has_blocks(shape.what) && shape.count % static_cast<std::size_t>(shape.ranks) != 0) return false;
  if (shape.count == 0 && shape.what != Collective::barrier) return false;
  const Network& network = playing.network;
  if (!network.uniform() || network.node(0).inside.copy > 0) return false;
  const auto first = playing.begins.front();
  return std::ranges::all_of(playing.begins, [&](double begin) { return begin == first; });
}

}  // namespace

std::optional<Played> play_closed_form(const Playing& playing) {
  if (!applies(playing)) return std::nullopt;
  const Network& network = playing.network;
  const Curve* line = network.line();
  if (line == nullptr) return std::nullopt;
  const Call& shape = playing.shape;
  const double bytes = static_cast<double>(shape.count * playing.element) * (has_blocks(shape.what) ? shape.ranks : 1);
  const auto form = closed_form(shape.what, playing.algorithm.name,
                                {shape.ranks, bytes, line->start, line->slope, network.node(0).inside.gamma});
  if (!form) return std::nullopt;
  const double end = playing.begins.front() + form->time_one.value;
  std::fill(playing.ends.begin(), playing.ends.end(), end);
  const double rounds = form->rounds.value;
  return Played{Tier::closed_form, end, static_cast<std::uint64_t>(rounds * shape.ranks + .5)};
}

}  // namespace trireme::plan

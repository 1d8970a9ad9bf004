#include "trireme/cluster/sim/collective_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/cluster/sim/tiers.h"
#include "trireme/collective/cost/cost.h"

namespace trireme::cluster {
namespace {

DType type_of(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::u8;
    case 2:
      return DType::f16;
    case 4:
      return DType::f32;
    case 8:
      return DType::f64;
    default:
      throw ConfigError(fmt::format("elements of {} bytes: there are those of 1, 2, 4 and 8", bytes));
  }
}

void check(const Playing& playing) {
  const auto ranks = static_cast<std::size_t>(playing.shape.ranks);
  TRIREME_CHECK(playing.shape.ranks >= 1 && playing.shape.ranks <= playing.network.ranks());
  TRIREME_CHECK(playing.begins.size() == ranks && playing.ends.size() == ranks);
  if (playing.algorithm.shared && !playing.network.shares_memory()) {
    throw ConfigError(fmt::format("algorithm '{}' needs workers that share memory; {} has not only such",
                                  playing.algorithm.name, playing.network.cluster().file));
  }
}

}  // namespace

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::closed_form:
      return "closed form";
    case Tier::max_plus:
      return "max-plus";
    case Tier::flows:
      return "flows";
  }
  return "";
}

// All meet before anyone reads, so all end together.
Played play_shared_memory(const Playing& playing) {
  const double begin = *std::max_element(playing.begins.begin(), playing.begins.end());
  const double end =
      begin + predict(playing.algorithm, playing.shape, type_of(playing.element), playing.network.node(0).inside);
  std::fill(playing.ends.begin(), playing.ends.end(), end);
  return {Tier::closed_form, end, 0};
}

namespace {

Schedule first_schedule(const Playing& playing) {
  Call call = playing.shape;
  call.rank = 0;
  return playing.algorithm.plan(call);
}

// The fast reader where there is one. It sees no single message.
Played by_max_plus(const Playing& playing, const Schedule& schedule) {
  return schedule.shift && !playing.observe ? play_shifts(playing, schedule) : play_max_plus(playing);
}

// What was measured of whole calls says how much longer they take than their messages do, once all have come.
void correct(const Playing& playing, Played& played, double last_begin) {
  const double factor = playing.network.correction(playing.algorithm, playing.shape, type_of(playing.element));
  if (factor == 1) return;
  played.end_s = last_begin;
  for (double& end : playing.ends) {
    if (end > last_begin) end = last_begin + (end - last_begin) * factor;
    played.end_s = std::max(played.end_s, end);
  }
}

}  // namespace

Played play(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes,
            std::span<const double> begins, std::span<double> ends, Traffic* traffic, const Observer& observe) {
  const Playing playing{network, algorithm, shape, element_bytes, begins, ends, traffic, observe};
  check(playing);
  if (algorithm.shared) return play_shared_memory(playing);
  const double last_begin = *std::max_element(begins.begin(), begins.end());  // before ends, which may be its memory
  const Schedule schedule = first_schedule(playing);
  auto played = play_closed_form(playing, schedule);
  if (!played) played = play_all_pairs(playing, schedule);
  if (!played) played = messages_meet(playing, schedule) ? play_flows(playing) : by_max_plus(playing, schedule);
  correct(playing, *played, last_begin);
  return *played;
}

Played play_by(Tier tier, const Network& network, const Algorithm& algorithm, const Call& shape,
               std::size_t element_bytes, std::span<const double> begins, std::span<double> ends, Traffic* traffic,
               const Observer& observe) {
  const Playing playing{network, algorithm, shape, element_bytes, begins, ends, traffic, observe};
  check(playing);
  if (!algorithm.shared) {
    if (tier == Tier::max_plus) return by_max_plus(playing, first_schedule(playing));
    if (tier == Tier::flows) return play_flows(playing);
    if (auto played = play_closed_form(playing, first_schedule(playing))) return *played;
  }
  throw ConfigError(fmt::format("{} by {} has no {} here", name(shape.what), algorithm.name, name(tier)));
}

double play(const Network& network, const Algorithm& algorithm, const Call& shape, std::size_t element_bytes) {
  Memory& memory = network.memory();
  const bool kept = shape.ranks == network.ranks() && shape.root == 0;
  const std::tuple key(&algorithm, shape.count, element_bytes);
  if (kept) {
    MutexLock lock(memory.guard);
    if (auto found = memory.alone.find(key); found != memory.alone.end()) return found->second;
  }
  std::vector<double> times(static_cast<std::size_t>(shape.ranks));
  const double seconds = play(network, algorithm, shape, element_bytes, times, times).end_s;
  if (kept) {
    MutexLock lock(memory.guard);
    memory.alone.emplace(key, seconds);
  }
  return seconds;
}

}  // namespace trireme::cluster

// The tiers behind play(), and what each is given. Private to this folder.
#pragma once
#include <vector>

#include "trireme/cluster/sim/collective_time.h"

namespace trireme::cluster {

struct Playing {
  const Network& network;
  const Algorithm& algorithm;
  const Call& shape;
  std::size_t element;  // bytes
  std::span<const double> begins;
  std::span<double> ends;
  Traffic* traffic;
  const Observer& observe;
};

Played play_shared_memory(const Playing& playing);                                         // collective_time.cpp
Played play_max_plus(const Playing& playing);                                              // max_plus.cpp
Played play_shifts(const Playing& playing, const Schedule& schedule);                      // shift_play.cpp: max-plus
Played play_flows(const Playing& playing);                                                 // flow_play.cpp
std::optional<Played> play_closed_form(const Playing& playing, const Schedule& schedule);  // closed_play.cpp
// Where many ranks send to all others in one round; nothing elsewhere.
std::optional<Played> play_all_pairs(const Playing& playing, const Schedule& schedule);  // all_pairs.cpp: flows

// Adds to the traffic what a schedule of shifts sends (shift_traffic.cpp).
void count_shifts(const Playing& playing, const Schedule& schedule);

// Whether messages of this call can slow each other down (tier_choice.cpp). `schedule` is rank 0's.
bool messages_meet(const Playing& playing, const Schedule& schedule);

// By rank.
std::vector<Schedule> schedules_of(const Playing& playing);

}  // namespace trireme::cluster

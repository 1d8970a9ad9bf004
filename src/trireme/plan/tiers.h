// The tiers behind play(), and what each is given. Private to this folder.
#pragma once
#include <vector>

#include "trireme/plan/collective_time.h"

namespace trireme::plan {

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

Played play_shared_memory(const Playing& playing);  // collective_time.cpp
Played play_max_plus(const Playing& playing);       // max_plus.cpp

// By rank.
std::vector<Schedule> schedules_of(const Playing& playing);

}  // namespace trireme::plan

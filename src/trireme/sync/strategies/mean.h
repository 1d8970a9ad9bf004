// The mean model of all ranks, and how far they are from it. Collective; nobody's weights change.
#pragma once
#include <span>

#include "trireme/collective/run/communicator.h"

namespace trireme::sync {

// √((1/P) Σ_r ‖x_r − centre‖²), over the ranks' x. The same on every rank.
double distance_to(Communicator& world, std::span<const float> centre, std::span<const float> x);

// mean ← (1/P) Σ_r x_r; returns the distance to it.
double mean_of_all(Communicator& world, std::span<const float> x, std::span<float> mean);

}  // namespace trireme::sync

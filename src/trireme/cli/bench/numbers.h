// The arithmetic of a benchmark's columns.
#pragma once
#include <vector>

#include "trireme/collective/schedule.h"

namespace trireme::bench {

double median(std::vector<double> values);
// busbw over algbw, as nccl-tests define it.
double bus_factor(Collective what, int ranks);
// Bytes that must be read and written over all ranks when each input is read once and each output written once.
double floor_bytes(Collective what, int ranks, double bytes);

}  // namespace trireme::bench

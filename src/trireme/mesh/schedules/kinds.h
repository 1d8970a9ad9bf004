// One function to make a schedule and some for what it costs, for each kind: gpipe.cpp and so on.
#pragma once
#include "trireme/mesh/schedule.h"

namespace trireme::pipelines {

Schedule make_gpipe(int stages, int micro_batches, int chunks);
Schedule make_one_f_one_b(int stages, int micro_batches, int chunks);
Schedule make_interleaved(int stages, int micro_batches, int chunks);
Schedule make_zero_bubble(int stages, int micro_batches, int chunks);
Schedule make_pipedream(int stages, int micro_batches, int chunks);

int held_by_gpipe(int stages, int micro_batches, int chunks, int stage);
int held_by_one_f_one_b(int stages, int micro_batches, int chunks, int stage);  // of pipedream too
int held_by_interleaved(int stages, int micro_batches, int chunks, int stage);
int held_by_zero_bubble(int stages, int micro_batches, int chunks, int stage);

std::optional<double> bubble_of_one_f_one_b(int stages, int micro_batches, int chunks);  // of gpipe and pipedream too
std::optional<double> bubble_of_interleaved(int stages, int micro_batches, int chunks);
std::optional<double> bubble_of_zero_bubble(int stages, int micro_batches, int chunks);

}  // namespace trireme::pipelines

// What speeds are compared with: the most that the calling core computes.
#pragma once

namespace trireme::ops {

// f32 multiplications and additions a second, two per fused operation, with the instruction set in use, measured over
// `seconds`: the best of several short stretches.
double measure_peak(double seconds = 0.02);

}  // namespace trireme::ops

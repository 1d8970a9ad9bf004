// What each rank puts into a measured collective and what it must find there afterwards, exactly. Values are small
// whole numbers with a period of 13 elements, so that every sum is exact in the element type and a buffer of any size
// is filled and compared by whole tiles.
#pragma once
#include <cstddef>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/collective/schedule.h"

namespace trireme::bench {

struct Job {
  Call call;  // root 0, stride = count
  DType dtype = DType::f32;
  Op op = Op::sum;
};

// all-reduce and broadcast work in place; every other collective reads one buffer and writes another.
bool in_place(Collective what);
// Elements of this rank's buffers; in place, both are the same buffer.
std::size_t input_elements(const Call& call);
std::size_t output_elements(const Call& call);

// Throws ConfigError when sums over that many ranks are not exact in the element type.
void require_exact(const Job& job);
// How often an in-place collective may run over one buffer before its values stop being exact.
int most_uses(const Job& job);

// Input of `rank` in rotating buffer `buffer`; the output, where it is another buffer, is overwritten with ones.
void fill(const Job& job, int buffer, std::byte* input, std::byte* output);
// Elements of the output that differ from the closed form after the collective ran `uses` times.
std::size_t count_errors(const Job& job, int buffer, int uses, const std::byte* output);

}  // namespace trireme::bench

// The arithmetic of collectives, vectorized with run-time dispatch. 16-bit floats are widened to f32 and rounded once
// per call. Integer sums and products wrap; avg is the sum, then one division (truncating for integers). min and max
// of floats propagate NaN.
#pragma once
#include <cstddef>
#include <span>

#include "trireme/base/dtype.h"

namespace trireme {

// into[i] ← into[i] ⊕ from[i]. For avg it sums; divide() ends it. Throws ConfigError for bitwise operators on floats.
using Reduce = void (*)(void* into, const void* from, std::size_t elements);
Reduce reduce_function(DType type, Op op);

// How results are written: through the cache, or past it (for results that nobody reads soon).
enum class Store : unsigned char { plain, streaming };

// outs[j][i] ← ⊕ over r of ins[r][i], in the canonical order of schedule.h, for every j; avg divides by ins.size().
// Each input is read once and each output written once. An output may be the same memory as an input, not shifted.
using Fold = void (*)(std::span<const void* const> ins, std::span<void* const> outs, std::size_t elements, Store store);
Fold fold_function(DType type, Op op);

// data[i] ← data[i] / by.
void divide(DType type, void* data, std::size_t elements, int by);

void copy_bytes(void* to, const void* from, std::size_t bytes, Store store);

}  // namespace trireme

// What the per-target files of reduce give: the functions for one element type and operator, for this machine.
#pragma once
#include <cstddef>
#include <span>

#include "trireme/collective/reduce/reduce.h"

namespace trireme::kernels {

struct Functions {
  Reduce reduce;
  Fold fold;
};

Functions float_functions(DType type, Op op);    // f32, f64
Functions half_functions(DType type, Op op);     // f16, bf16
Functions integer_functions(DType type, Op op);  // the rest

using Divide = void (*)(void* data, std::size_t elements, int by);
Divide float_divide(DType type);
Divide half_divide(DType type);
Divide integer_divide(DType type);

using Spread = void (*)(const void* from, std::span<void* const> outs, std::size_t bytes, Store store);
Spread spread_function();

}  // namespace trireme::kernels

#include "trireme/collective/reduce/reduce.h"

#include <fmt/format.h>

#include <cstring>

#include "trireme/base/error.h"
#include "trireme/collective/reduce/kernels.h"

namespace trireme {
namespace {

kernels::Functions functions(DType type, Op op) {
  if (!defined(type, op)) {
    throw ConfigError(fmt::format(
        "operator {} is not defined on {}: bitwise operators take integers (i8, u8, i32, i64)", name(op), name(type)));
  }
  switch (type) {
    case DType::f32:
    case DType::f64:
      return kernels::float_functions(type, op);
    case DType::f16:
    case DType::bf16:
      return kernels::half_functions(type, op);
    default:
      return kernels::integer_functions(type, op);
  }
}

}  // namespace

Reduce reduce_function(DType type, Op op) { return functions(type, op).reduce; }
Fold fold_function(DType type, Op op) { return functions(type, op).fold; }

void divide(DType type, void* data, std::size_t elements, int by) {
  TRIREME_CHECK(by >= 1);
  if (by == 1) return;
  switch (type) {
    case DType::f32:
    case DType::f64:
      return kernels::float_divide(type)(data, elements, by);
    case DType::f16:
    case DType::bf16:
      return kernels::half_divide(type)(data, elements, by);
    default:
      return kernels::integer_divide(type)(data, elements, by);
  }
}

void copy_bytes(void* to, const void* from, std::size_t bytes, Store store) {
  if (bytes == 0 || to == from) return;
  if (store == Store::plain) {
    std::memcpy(to, from, bytes);
  } else {
    kernels::spread_function()(from, {&to, 1}, bytes, store);
  }
}

}  // namespace trireme

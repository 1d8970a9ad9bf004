#include "trireme/grad/element_type.h"

namespace trireme::grad {

std::optional<DType> element_type(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return DType::f32;
    case torch::kFloat64:
      return DType::f64;
    case torch::kFloat16:
      return DType::f16;
    case torch::kBFloat16:
      return DType::bf16;
    case torch::kInt8:
      return DType::i8;
    case torch::kUInt8:
      return DType::u8;
    case torch::kInt32:
      return DType::i32;
    case torch::kInt64:
      return DType::i64;
    default:
      return std::nullopt;
  }
}

}  // namespace trireme::grad

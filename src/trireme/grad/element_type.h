// LibTorch's types of elements as collectives know them.
#pragma once
#include <torch/torch.h>

#include <optional>

#include "trireme/base/dtype.h"

namespace trireme::grad {

// Nothing for one that they do not know.
std::optional<DType> element_type(torch::ScalarType type);

}  // namespace trireme::grad

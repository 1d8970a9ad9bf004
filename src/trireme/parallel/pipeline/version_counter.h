// Autograd counts changes in place, and refuses a backward through what has changed since its forward. Where we know
// better, because the old values are put back or are never read, the count is put back too.
#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace trireme::parallel {

inline void set_version(const torch::Tensor& tensor, std::uint32_t version) {
  tensor.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(version));
}

}  // namespace trireme::parallel

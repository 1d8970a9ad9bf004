#include "trireme/grad/torch_hardware.h"

#include <fmt/format.h>
#include <torch/version.h>

namespace trireme {

std::string libtorch_version() {
  return fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

NamedValues torch_hardware() {
  auto values = hardware();
  values.emplace_back("libtorch", libtorch_version());
  return values;
}

}  // namespace trireme

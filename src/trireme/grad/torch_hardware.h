// What a measurement of training says of where it was made.
#pragma once
#include <string>

#include "trireme/base/hardware/cpu.h"

namespace trireme {

std::string libtorch_version();  // "2.15.0"
// hardware(), and libtorch.
NamedValues torch_hardware();

}  // namespace trireme

// The time when all that was asked of a device is done.
#pragma once
#include <torch/torch.h>

#include "trireme/base/clock.h"

namespace trireme::train {

inline double device_seconds(const torch::Device& device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.has_index() ? device.index() : -1);
  return now_seconds();
}

}  // namespace trireme::train

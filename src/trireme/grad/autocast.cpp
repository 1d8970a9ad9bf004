#include "trireme/grad/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <cstdlib>

namespace trireme {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool enabled(torch::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void enable(torch::DeviceType device, bool on) {
  at::autocast::set_autocast_enabled(device, on);
  at::autocast::set_autocast_dtype(device, torch::kBFloat16);
}
#else
bool enabled(torch::DeviceType device) {
  return device == torch::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void enable(torch::DeviceType device, bool on) {
  if (device == torch::kCPU) {
    at::autocast::set_cpu_enabled(on);
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  } else {
    at::autocast::set_enabled(on);
    at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
  }
}
#endif

}  // namespace

void avoid_amx() {
#if TORCH_VERSION_MAJOR < 2
  if (!std::getenv("ONEDNN_MAX_CPU_ISA")) setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/0);
#endif
}

Autocast::Autocast(torch::DeviceType device, bool on) : device_(device), before_(enabled(device)) {
  enable(device_, on);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable(device_, before_);
}

}  // namespace trireme

#include "trireme/grad/autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <cstdlib>

#include "trireme/base/hardware/cpu.h"
#include "trireme/grad/onednn_cap.h"

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

std::string avoid_amx() {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr) return "";
  if (!this_cpu().has("amx_tile")) return "";
  const auto cap = onednn_cap();
  if (!cap) {
    return fmt::format(
        "bf16: LibTorch {} fails a test of products in bf16 on this CPU, whatever oneDNN may use; train "
        "without --autocast if it does here, too",
        TORCH_VERSION);
  }
  if (cap->empty()) return "";
  setenv("DNNL_MAX_CPU_ISA", cap->c_str(), 1);
  return fmt::format(
      "bf16: oneDNN capped to {} (DNNL_MAX_CPU_ISA): LibTorch {} fails a test of products in bf16 on "
      "this CPU without it",
      *cap, TORCH_VERSION);
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

// bf16 where it is safe: while an Autocast lives, LibTorch runs this thread's matrix products and convolutions on the
// CPU (or CUDA) in bf16. Parameters and their gradients stay f32.
#pragma once
#include <torch/torch.h>

namespace trireme {

class Autocast {
 public:
  explicit Autocast(torch::DeviceType device = torch::kCPU, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool before_;
};

// Keeps oneDNN from AMX, where the one LibTorch 1.13 comes with ends the process with SIGILL. First in main, before
// other threads and before LibTorch computes; DNNL_MAX_CPU_ISA and ONEDNN_MAX_CPU_ISA go before it.
void avoid_amx();

}  // namespace trireme

// bf16 where it is safe: while an Autocast lives, LibTorch runs this thread's matrix products and convolutions on the
// CPU (or CUDA) in bf16. Parameters and their gradients stay f32. Layers of optimized models (trireme/optimize.h) stay
// f32, too, and round factors to bf16 where that is measured faster.
#pragma once
#include <torch/torch.h>

#include <string>

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

// Caps what oneDNN uses where LibTorch's products in bf16 end the process without it: LibTorch 1.13's on CPUs with AMX.
// What is needed is found in a child process, once per kind of CPU and LibTorch, and kept. Before other threads and
// before LibTorch computes; a cap of the user's (ONEDNN_MAX_CPU_ISA, DNNL_MAX_CPU_ISA) stays, and other CPUs are not
// tested. Returns one line that says what was capped and why; empty where nothing was.
std::string avoid_amx();

}  // namespace trireme

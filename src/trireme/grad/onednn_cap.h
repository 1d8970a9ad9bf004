// How far oneDNN's instructions must be capped for LibTorch's products in bf16 to work: the oneDNN 2.6 of LibTorch 1.13
// ends the process with SIGILL on CPUs with AMX.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace trireme {

// Whether products and convolutions in bf16, and their gradients, end and are right under this cap (a value of
// DNNL_MAX_CPU_ISA; empty: none). Tried in a child process: before other threads and before LibTorch computes.
bool bf16_works(const std::string& cap);

// The least cap under which they do, empty where none is needed; nothing where none helps.
std::optional<std::string> find_onednn_cap(const std::function<bool(const std::string& cap)>& works = bf16_works);

// The same, found once per kind of CPU and LibTorch and kept with the measurements of this machine. A folder that
// cannot be written to only means that the next run looks again.
std::optional<std::string> onednn_cap(const std::function<bool(const std::string& cap)>& works = bf16_works);

}  // namespace trireme

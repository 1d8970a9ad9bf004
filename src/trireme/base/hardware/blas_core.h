// Which kernels OpenBLAS uses: its core type. It takes one when it is loaded, by a table of the CPUs its makers knew.
// For newer ones that may be far too old: Debian's 0.3.21 takes recent Xeons for a Prescott, with a fifth of the speed.
// OPENBLAS_CORETYPE overrides the table; it must be set before the library is loaded, so for programs yet to be
// started.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/hardware/cpu.h"

namespace trireme {

// What a look at the BLAS in a process of its own finds.
struct BlasProbe {
  std::string library;  // its file
  std::string config;   // what it says of itself: "OpenBLAS 0.3.21 …"
  std::string core;     // the core type in use
  double gflops = 0;    // of its matrix product on one thread, where that was measured
};
// Loads the system's BLAS with this core type (empty: the one it picks). Nothing where it is no OpenBLAS, where the
// CPU refuses the kernels, and after a second.
using BlasProber = std::function<std::optional<BlasProbe>(const std::string& core, bool measure)>;
std::optional<BlasProbe> probe_blas(const std::string& core, bool measure);

struct BlasCore {
  std::string library;  // its file; empty: no OpenBLAS
  std::string picked;   // by OpenBLAS itself
  std::string best;
  std::vector<std::pair<std::string, double>> gflops;  // of those measured; none where what it picks fits the CPU

  bool operator==(const BlasCore&) const = default;
};

// The core types made for such a CPU, the likely fastest first; none where nothing is known.
std::vector<std::string> core_types_for(const Cpu& cpu);
// What OpenBLAS picks stays where it is made for the CPU, or where none of the others is a tenth faster.
BlasCore find_blas_core(const Cpu& cpu, const BlasProber& probe = probe_blas);

// As kept in the folder of measurements for this kind of CPU, while the library is the same file.
std::optional<BlasCore> stored_blas_core();
// The same, or found now and kept. A folder that cannot be written to only means that the next run looks
// again. Nothing can be found by a process that has loaded a BLAS itself.
BlasCore blas_core();

// Sets OPENBLAS_CORETYPE for programs started from here on, where another core type is better than the one picked; what
// the user has set stays. Before other threads are started: it forks. True if it was set now.
bool set_blas_core();

// "OpenBLAS 0.3.21, Cooperlake": that which this process has loaded; "none" before one is.
std::string blas_in_use();

}  // namespace trireme

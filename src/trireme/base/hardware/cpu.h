// The processor of this host, as Linux describes it.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme {

struct Cpu {
  std::string model;  // "AMD EPYC 9B45"; the machine's name where the kernel tells no model
  std::string kind;   // vendor, family, model and stepping by number: several CPUs may have one name
  std::vector<std::string> instruction_sets;  // those that numerical code chooses by, in the kernel's names
  std::vector<std::string> caches;            // of the first core: "L1d 48K", "L2 2M", "L3 32M"

  bool has(std::string_view instruction_set) const;
};

// Reads /proc/cpuinfo and /sys; what is not there stays empty.
Cpu this_cpu();
Cpu parse_cpu(std::string_view cpuinfo);  // all but the caches
// One word for what is measured once per kind of CPU: equal where model, kind, instruction sets and caches are.
std::string key_of(const Cpu& cpu);

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// What a measurement ought to say of where it was made: cpu, instruction_sets, caches, and the BLAS this process has
// loaded with the kernels that it uses.
NamedValues hardware();

}  // namespace trireme

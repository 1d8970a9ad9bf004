// Which vector instructions the operators' kernels use: the best that the CPU has, or less when limited.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme::ops {

// Those that this CPU has and kernels are compiled for, the best first: "avx512", "avx2", "sse4", "scalar".
std::vector<std::string> instruction_sets();

// What kernels use now.
std::string instruction_set();

// From now on at most this one, for all kernels of the process; "auto" takes the limit back. Throws ConfigError where
// the CPU lacks it. Not while operators run; what was packed before stays usable.
void set_instruction_set(std::string_view name);

// Whether matrix units (AMX) may be used where CPU and system have them; true until told otherwise. As with the limit,
// not while operators run.
void allow_amx(bool allowed);
bool amx_allowed();

}  // namespace trireme::ops

#include "trireme/ops/instruction_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <atomic>

#include "trireme/base/error.h"

namespace trireme::ops {
namespace {

std::atomic<bool> may_use_amx = true;

std::string set_name(int64_t target) {
  if (target == HWY_AVX3) return "avx512";
  if (target == HWY_AVX2) return "avx2";
  if (target == HWY_SSE4) return "sse4";
  if (target == HWY_EMU128 || target == HWY_SCALAR) return "scalar";
  return hwy::TargetName(target);
}

// Highway numbers better targets lower. Without those that base/targets.h leaves out.
std::vector<int64_t> targets() {
  std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets();
  std::erase(all, HWY_SSSE3);
  return all;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const int64_t target : targets()) names.push_back(set_name(target));
  return names;
}

std::string instruction_set() { return instruction_sets().front(); }

void set_instruction_set(std::string_view name) {
  // Not DisableTargets: in Highway 1.0 every question for what is supported takes its choice back.
  hwy::SetSupportedTargetsForTest(0);
  if (name == "auto") return;
  for (const int64_t target : targets()) {
    if (set_name(target) == name) return hwy::SetSupportedTargetsForTest(hwy::SupportedTargets() & -target);
  }
  throw ConfigError(
      fmt::format("this CPU has no instruction set {}; there are auto, {}", name, fmt::join(instruction_sets(), ", ")));
}

void allow_amx(bool allowed) { may_use_amx = allowed; }
bool amx_allowed() { return may_use_amx; }

}  // namespace trireme::ops

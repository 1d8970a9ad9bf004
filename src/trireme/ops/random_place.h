// Random numbers that depend on a seed and a place alone, so that backward draws again what forward drew.
#pragma once
#include <cstdint>

#include "trireme/base/mix.h"

namespace trireme::ops {

constexpr uint64_t mixed_at(uint64_t seed, uint64_t place) { return mixed(mixed(seed) ^ place); }

// A number of 32 bits is kept where it is not below this.
constexpr uint32_t drop_threshold(float share) {
  return static_cast<uint32_t>(static_cast<double>(share) * 4294967296.0);
}

}  // namespace trireme::ops

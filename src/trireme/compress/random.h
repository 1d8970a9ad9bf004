// Random numbers without a state: a hash of where they are used. The same on every machine; different for every worker,
// tensor, call and element.
#pragma once
#include <cstdint>

#include "trireme/compress/codec.h"

namespace trireme::compress {

// The finalizer of splitmix64 (Steele, Lea, Flood, 2014): every bit of z changes half of the bits.
constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// What a tensor's draws begin with: the same on every worker.
inline std::uint64_t shared_key(const Tensor& tensor, const Surroundings& around) {
  return mixed(mixed(around.seed) ^ static_cast<std::uint64_t>(tensor.number));
}
// One worker's own.
inline std::uint64_t own_key(const Tensor& tensor, const Surroundings& around) {
  return mixed(shared_key(tensor, around) ^ mixed(static_cast<std::uint64_t>(around.rank)));
}

}  // namespace trireme::compress

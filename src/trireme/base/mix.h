// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014): every bit of z changes half of the bits. Random numbers
// without a state are made of it: a hash of where they are used.
#pragma once
#include <cstdint>

namespace trireme {

constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace trireme

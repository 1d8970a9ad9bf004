// A fast 64-bit checksum against silent corruption: four lanes of multiply and rotate over 8-byte
// little-endian words. Any change within one word changes it. It is no defence against an adversary.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace trireme {

// The same for the same bytes, however they were cut into calls.
class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {
    auto from = static_cast<const unsigned char*>(data);
    total_ += bytes;
    if (held_ > 0) {
      auto part = bytes < kBlock - held_ ? bytes : kBlock - held_;
      if (part > 0) std::memcpy(block_.data() + held_, from, part);
      held_ += part, from += part, bytes -= part;
      if (held_ < kBlock) return;
      mix(block_.data(), 1);
      held_ = 0;
    }
    mix(from, bytes / kBlock);
    held_ = bytes % kBlock;
    if (held_ > 0) std::memcpy(block_.data(), from + (bytes - held_), held_);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }

  // Of what was added so far.
  std::uint64_t value() const {
    Checksum last = *this;
    std::memset(last.block_.data() + held_, 0, kBlock - held_);
    last.mix(last.block_.data(), 1);
    std::uint64_t all = total_;
    for (auto lane : last.lanes_) all = finish(all ^ lane);
    return all;
  }

 private:
  static constexpr std::size_t kBlock = 32;
  static constexpr std::uint64_t kPrime = 0x9e3779b185ebca87u;

  void mix(const unsigned char* from, std::size_t blocks) {
    static_assert(std::endian::native == std::endian::little);
    auto lanes = lanes_;
    for (; blocks > 0; --blocks, from += kBlock) {
      for (std::size_t i = 0; i < 4; ++i) {
        std::uint64_t word;
        std::memcpy(&word, from + 8 * i, 8);
        lanes[i] = std::rotl((lanes[i] ^ word) * kPrime, 31);
      }
    }
    lanes_ = lanes;
  }
  static std::uint64_t finish(std::uint64_t x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::array<unsigned char, kBlock> block_{};
  std::size_t held_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace trireme

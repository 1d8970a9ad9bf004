// Checksums of ours: XXH3 with 64 bits. Against broken hardware and cut files, not against people.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trireme {

std::uint64_t checksum(const void* data, std::size_t bytes);
// Its lower half, for headers with room for no more.
inline std::uint32_t checksum32(const void* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(checksum(data, bytes));
}

// The same for the same bytes, however they were cut into calls.
class Checksum {
 public:
  Checksum() { reset(); }
  void reset();
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  // Of what was added so far.
  std::uint64_t value() const;

 private:
  alignas(64) std::byte state_[576];  // the library's; its header stays out of ours
};

}  // namespace trireme

// CRC-32C (Castagnoli): what headers and, by flag, payloads are checked with. Against broken hardware, not against
// people.
#pragma once
#include <cstddef>
#include <cstdint>

namespace trireme {

// Continues `crc`; start with 0. Uses the processor's instruction where there is one.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc = 0);
// The same by table, for processors without it.
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t crc = 0);

}  // namespace trireme

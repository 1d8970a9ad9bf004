#include "trireme/base/files/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // the layout of the state
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the widest instructions of this processor: 90 GB/s instead of 5
#endif

#include <new>

namespace trireme {

std::uint64_t checksum(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

void Checksum::reset() {
  static_assert(sizeof(XXH3_state_t) <= sizeof state_ && alignof(XXH3_state_t) <= 64);
  XXH3_64bits_reset(new (state_) XXH3_state_t);
}

void Checksum::add(const void* data, std::size_t bytes) {
  if (bytes > 0) XXH3_64bits_update(std::launder(reinterpret_cast<XXH3_state_t*>(state_)), data, bytes);
}

std::uint64_t Checksum::value() const {
  return XXH3_64bits_digest(std::launder(reinterpret_cast<const XXH3_state_t*>(state_)));
}

}  // namespace trireme

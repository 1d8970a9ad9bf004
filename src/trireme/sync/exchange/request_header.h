// What a request to an answering rank begins with, as a message of its own (answering.h). The simulator counts its
// bytes.
#pragma once
#include <cstdint>

namespace trireme::sync {

struct RequestHeader {
  std::uint64_t bytes = 0;
  std::uint64_t leaving = 0;  // 1: there will be no more
};

}  // namespace trireme::sync

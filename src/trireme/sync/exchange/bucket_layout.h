// How gradients lie in a bucket. The runtime lays them out so (grad/bucket_memory.cpp), the simulator counts the bytes.
#pragma once
#include <cstddef>

namespace trireme::sync {

// A gradient of so many bytes that is alone in its bucket is exchanged where autograd has it, if it can be.
inline constexpr std::size_t kInPlaceFrom = 64 << 10;

// Gradients begin at multiples of 64 bytes, so that kernels on them are as quick as on tensors of their own.
constexpr std::size_t bucket_line(std::size_t element_bytes) { return 64 / element_bytes; }
// Where the next one begins after one of `count` elements at a multiple of `line`.
constexpr std::size_t padded(std::size_t count, std::size_t line) { return (count + line - 1) / line * line; }

// Whether what ranks tell each other (step_notes.h) fits behind the last bucket's gradients, of so many bytes.
constexpr bool carries_notes(int gradients, std::size_t bytes) { return gradients > 1 || bytes < kInPlaceFrom; }

}  // namespace trireme::sync

// Forward, or one phase of the gradient of data, as products of tiles of a padded image and filters in bf16, with sums
// in f32.
//
//   pack the filters                           threads take strips
//   for each block of rows or pictures:        threads take blocks
//     round its part of the source once into a padded image
//     for each panel of filters, for each tile of slots: Σ over places of the kernel and lines of channels
//
// An element's sum is one chain, in that order: the bits depend neither on blocks nor on threads.
// Cost: the definition's products and those of slots without an output; the source is read once and the rows that two
// blocks share twice.
#pragma once
#include <span>
#include <vector>

#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/padded/padded_image.h"

namespace trireme::ops::padded {

// Whether a pass is worth it: one group, channels enough that a line is not mostly zeros, and for the gradient of the
// weights, in which slots without an output cost most, a kernel that outruns packing.
bool takes(const internal::Bf16Kernel& kernel, const ConvShape& shape, Pass pass);

class Gathering {
 public:
  // `turned`: from the gradient of the output to that of the input.
  Gathering(const internal::Bf16Kernel& kernel, const ConvShape& shape, const Axis& down, const Axis& across,
            bool turned);

  int64_t workspace(int64_t slots) const;  // of so many threads
  double bytes() const;                    // to and from memory
  double products() const;                 // multiplied, with those for nothing
  void run(const ConvTensors& tensors, std::span<std::byte> workspace) const;

 private:
  struct Slot {
    Slot(Arena& arena, const Gathering& of)
        : image(arena.take<uint32_t>(of.image_.pairs())), outs(arena.take<float*>(of.image_.most_slots())) {}
    uint32_t* image;
    float** outs;  // of a block's slots; null where there is no output
  };

  int64_t filter_pairs() const;
  void run_block(const ConvTensors& tensors, const uint32_t* filters, const Slot& slot, const Block& block) const;

  const internal::Bf16Kernel& kernel_;
  ConvShape shape_;
  Axis down_, across_;
  bool turned_;
  int64_t filters_;
  PaddedImage image_;
  std::vector<int64_t> steps_;
};

}  // namespace trireme::ops::padded

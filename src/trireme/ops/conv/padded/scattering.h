// The gradient of the weights as products of matrices in bf16 whose sums run over slots of a padded image, with sums in
// f32: dw[filter][place][channel] = Σ over slots of dy[slot][filter] · x[slot + place][channel].
//
//   for each block of rows or pictures:                      lanes take blocks
//     round its part of dy, tiles of filters whose pairs run over slots; zeros in slots without an output
//     round its part of the source twice, strips of channels whose pairs begin at even pixels, and at odd ones
//     for each place of the kernel, for each panel of channels: Σ over slots, from the strip that has the place's pairs
//   add the lanes
//
// A place is a pointer into a strip: nothing is packed again for it. Numbers that are none meet zeros in slots without
// an output, so they may spread to places that the definition leaves alone.
// Cost: the definition's products and those of slots without an output.
#pragma once
#include <span>
#include <vector>

#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/padded/padded_image.h"

namespace trireme::ops::padded {

class Scattering {
 public:
  Scattering(const internal::Bf16Kernel& kernel, const ConvShape& shape);

  int64_t workspace() const;
  double bytes() const;     // to and from memory
  double products() const;  // multiplied, with those for nothing
  void run(const ConvTensors& tensors, std::span<std::byte> workspace) const;

 private:
  struct Lane {
    Lane(Arena& arena, const Scattering& of);
    float* sums;  // [filters][places][strips of channels][16]
    float** rows;
    const float** pixels;
    const float** gradients;  // of the slots
    uint32_t* tiles;
    uint32_t* strips;  // from even pixels, then from odd ones
    float* zeros;
  };

  int64_t channel_strips() const { return internal::bf16_strips(shape_.in_channels); }
  int64_t strip_lines() const { return internal::bf16_lines(image_.pixels()); }
  int64_t row() const { return static_cast<int64_t>(places_.size()) * channel_strips() * internal::kBf16Strip; }
  int64_t sums() const { return shape_.out_channels * row(); }

  void run_block(const ConvTensors& tensors, const Lane& lane, const Block& block, bool accumulate) const;
  void pack(const ConvTensors& tensors, const Lane& lane, const Block& block) const;
  void write_filter(const float* sums, float* weight) const;

  const internal::Bf16Kernel& kernel_;
  ConvShape shape_;
  PaddedImage image_;
  std::vector<int64_t> places_;
  int64_t copies_ = 1;  // of the strips: two where a place is odd
  int64_t lanes_ = 1;
};

}  // namespace trireme::ops::padded

// Forward, and the gradient of the data: Σ over channels of transformed filters and tiles.
#pragma once
#include <vector>

#include "trireme/ops/conv/conv.h"
#include "trireme/ops/conv/winograd/tiles.h"

namespace trireme::ops::winograd {

class Filtering {
 public:
  Filtering(const ConvShape& shape, Pass pass, int m);
  const Tiles& tiles() const { return tiles_; }
  int64_t workspace(int64_t slots) const;
  int64_t blocks() const { return (tiles_.count() + block_ - 1) / block_; }

  void run(const ConvTensors& tensors, std::span<std::byte> workspace);

 private:
  int64_t shared() const { return n_ * n_ * filter_part_ + wide(channels_); }

  void transform_filters(const float* weight) const;
  void run_block(const Block& block, int64_t number) const;
  void read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const;
  void write_tiles(const Block& block, int64_t begin, int64_t end) const;

  ConvShape shape_;
  bool turned_;
  int m_, n_;
  int64_t channels_ = 0, filters_ = 0;
  Pictures from_, to_;
  std::array<int64_t, 2> padding_{};
  Tiles tiles_;
  int64_t block_ = 0, filter_part_ = 0;
  float* filters_at_ = nullptr;
  float* zeros_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace trireme::ops::winograd

// Forward, and the gradient of the data: Σ over channels of transformed filters and tiles.
#pragma once
#include <vector>

#include "trireme/ops/conv/conv.h"
#include "trireme/ops/conv/tiled/tiles.h"

namespace trireme::ops::tiled {

class Filtering {
 public:
  // The transform must outlive it.
  Filtering(const ConvShape& shape, Pass pass, const Transform& transform);
  const Tiles& tiles() const { return tiles_; }
  int64_t workspace(int64_t slots) const;
  void run(const ConvTensors& tensors, std::span<std::byte> workspace);

 private:
  // What one thread needs for a group of filters.
  struct Group {
    Group(Arena& arena, const Filtering& of);
    float* filters;
    float* products;
    float** outs;
  };

  int64_t blocks() const { return (tiles_.count() + block_ - 1) / block_; }
  int64_t filters_size() const { return few_ ? 0 : transform_.parts * filter_part_; }
  int64_t product_part() const { return tiles_.count() * kGroup + kStrip; }
  int64_t slots(std::span<std::byte> workspace) const;

  void run_blocks(Arena& arena, int64_t slots) const;
  void run_groups(Arena& arena, int64_t slots) const;
  void run_block(const Block& block, int64_t number) const;
  void run_group(const Block& block, const Group& group, int64_t filter, int64_t count) const;
  // Up to 16 channels of up to 16 filters.
  void transform_filters(int64_t filter, int64_t channel, FilterPlaces to) const;
  void read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const;
  void write_tiles(const Block& block, int64_t begin, int64_t end) const;

  ConvShape shape_;
  bool turned_;
  const Transform& transform_;
  bool few_ = false;
  int64_t channels_ = 0, filters_ = 0;
  Pictures from_, to_;
  std::array<int64_t, 2> padding_{};
  Tiles tiles_;
  int64_t block_ = 0, filter_rows_ = 0, filter_part_ = 0;
  const float* weight_ = nullptr;
  float* filters_at_ = nullptr;
  float* zeros_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace trireme::ops::tiled

// The gradient of the filters: Σ over tiles of transformed data and gradients.
#pragma once
#include <vector>

#include "trireme/ops/conv/conv.h"
#include "trireme/ops/conv/tiled/tiles.h"

namespace trireme::ops::tiled {

class WeightGradient {
 public:
  // The transform must outlive it.
  WeightGradient(const ConvShape& shape, const Transform& transform);
  const Tiles& tiles() const { return tiles_; }
  int64_t workspace(int64_t slots) const;
  void run(const ConvTensors& tensors, std::span<std::byte> workspace);

 private:
  static constexpr int64_t kGroupPart = kGroup * kGroup + kStrip;

  struct Lane {
    Lane(Arena& arena, const WeightGradient& of)
        : block(arena, of.transform_, of.block_, of.shape_.in_channels, of.shape_.out_channels),
          sums(arena.take<float>(of.transform_.parts * of.sum_part_)) {}
    Block block;
    float* sums;  // n² matrices in strips of filters, each a row of 16 for every channel
  };

  int64_t blocks() const { return (tiles_.count() + block_ - 1) / block_; }
  int64_t zeros() const { return wide(std::max(shape_.in_channels, shape_.out_channels)); }

  void run_block(const Lane& lane, int64_t number, bool accumulate) const;
  void read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const;
  void run_groups(Arena& arena, int64_t slots) const;
  void run_group(const Block& block, float* sums, int64_t filter, int64_t channel) const;
  void add_lanes(const std::vector<Lane>& lanes) const;
  // Up to 16 channels of up to 16 filters.
  void write_filters(FilterPlaces sums, int64_t filter, int64_t channel) const;

  ConvShape shape_;
  const Transform& transform_;
  bool few_ = false;
  Tiles tiles_;
  int64_t block_ = 0, sum_rows_ = 0, sum_part_ = 0, lanes_ = 1;
  Pictures input_, output_;
  float* zeros_ = nullptr;
  float* weight_ = nullptr;
};

}  // namespace trireme::ops::tiled

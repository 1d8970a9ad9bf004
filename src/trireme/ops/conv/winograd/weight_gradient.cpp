#include "trireme/ops/conv/winograd/weight_gradient.h"

#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/lanes.h"
#include "trireme/ops/conv/winograd/winograd_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::winograd {

WeightGradient::WeightGradient(const ConvShape& shape, int m) : shape_(shape), m_(m), n_(m + 2) {
  tiles_ = tiles_of(shape.batch, shape.out_height(), shape.out_width(), m);
  few_ = tiles_.count() > 0 && few_tiles(shape.in_channels, shape.out_channels, tiles_.count());
  block_ = few_ ? tiles_.count() : block_tiles(n_, shape.in_channels, shape.out_channels, tiles_.count());
  sum_part_ = strips(shape.out_channels) * shape.in_channels * kStrip + kStrip;
  lanes_ = sum_lanes(n_ * n_ * sum_part_, blocks());
}

int64_t WeightGradient::workspace(int64_t slots) const {
  Arena arena;
  arena.take<float>(zeros());
  if (few_) Block(arena, m_, block_, shape_.in_channels, shape_.out_channels);
  for (int64_t slot = 0; few_ && slot < slots; ++slot) arena.take<float>(n_ * n_ * kGroupPart);
  for (int64_t lane = 0; !few_ && lane < lanes_; ++lane) Lane(arena, *this);
  return arena.used();
}

void WeightGradient::run(const ConvTensors& tensors, std::span<std::byte> workspace) {
  weight_ = tensors.weight;
  if (tiles_.count() == 0) {
    std::fill_n(weight_, shape_.weight_size(), 0.0f);
    return;
  }
  input_ = {tensors.input, shape_.height, shape_.width, shape_.in_channels};
  output_ = {tensors.output, shape_.out_height(), shape_.out_width(), shape_.out_channels};
  Arena arena(workspace);
  zeros_ = arena.take<float>(zeros());
  std::fill_n(zeros_, zeros(), 0.0f);
  if (few_) {
    int64_t slots = 1;
    while (slots < threads() && this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) ++slots;
    return run_groups(arena, slots);
  }
  std::vector<Lane> lanes;
  for (int64_t lane = 0; lane < lanes_; ++lane) lanes.emplace_back(arena, *this);
  each_lane(lanes_, [&](int64_t lane) {
    for (int64_t block = lane; block < blocks(); block += lanes_) {
      run_block(lanes[static_cast<std::size_t>(lane)], block, block >= lanes_);
    }
  });
  add_lanes(lanes);
}

// Sums over all tiles at once, of one group of filters and channels after the other.
void WeightGradient::run_groups(Arena& arena, int64_t slots) const {
  const Block block(arena, m_, block_, shape_.in_channels, shape_.out_channels);
  parallel(block_, [&](int64_t tile) { read_tiles(block, 0, tile, tile + 1); });
  std::vector<float*> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.push_back(arena.take<float>(n_ * n_ * kGroupPart));
  const int64_t across = (shape_.in_channels + kGroup - 1) / kGroup;
  const int64_t groups = (shape_.out_channels + kGroup - 1) / kGroup * across;
  std::atomic<int64_t> next = 0;
  parallel(slots, [&](int64_t slot) {
    for (int64_t group = next++; group < groups; group = next++) {
      run_group(block, own[static_cast<std::size_t>(slot)], group / across * kGroup, group % across * kGroup);
    }
  });
}

void WeightGradient::run_group(const Block& block, float* sums, int64_t filter, int64_t channel) const {
  const int64_t filters = std::min(kGroup, shape_.out_channels - filter);
  const int64_t channels = std::min(kGroup, shape_.in_channels - channel);
  for (int64_t part = 0; part < n_ * n_; ++part) {
    conv_kernels::multiply(
        conv_kernels::ColumnsProduct{.left = block.rows,
                                     .left_offset = part * block.data_part + channel,
                                     .row_count = channels,
                                     .length = block_,
                                     .right = block.other + part * block.other_part + filter * block_,
                                     .right_strip = block_ * kStrip,
                                     .strip_count = strips(filters),
                                     .out = sums + part * kGroupPart,
                                     .out_strip = channels * kStrip});
  }
  for (int64_t f = 0; f < filters; f += kStrip) {
    for (int64_t c = 0; c < channels; c += kStrip) {
      write_filters(sums + f * channels + c * kStrip, kGroupPart, filter + f, channel + c);
    }
  }
}

void WeightGradient::run_block(const Lane& lane, int64_t number, bool accumulate) const {
  const int64_t first = number * block_, count = std::min(block_, tiles_.count() - first);
  parallel((count + kTilesAtATime - 1) / kTilesAtATime, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime;
    read_tiles(lane.block, first, begin, std::min(begin + kTilesAtATime, count));
  });
  parallel(n_ * n_, [&](int64_t part) {
    conv_kernels::multiply(conv_kernels::ColumnsProduct{.left = lane.block.rows,
                                                        .left_offset = part * lane.block.data_part,
                                                        .row_count = shape_.in_channels,
                                                        .length = count,
                                                        .right = lane.block.other + part * lane.block.other_part,
                                                        .right_strip = block_ * kStrip,
                                                        .strip_count = strips(shape_.out_channels),
                                                        .out = lane.sums + part * sum_part_,
                                                        .out_strip = shape_.in_channels * kStrip,
                                                        .accumulate = accumulate});
  });
}

void WeightGradient::read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const {
  const float** out_places = const_cast<const float**>(block.out_places);
  for (int64_t t = begin; t < end; ++t) {
    const auto [picture, row, column] = tiles_.place(first + t);
    const auto look = [&](const Pictures& pictures, int64_t h, int64_t w) {
      const float* place = pictures.at(picture, h, w);
      return place != nullptr ? place : zeros_;
    };
    for (int64_t i = 0; i < n_ * n_; ++i) {
      block.in_places[t * n_ * n_ + i] =
          look(input_, row + i / n_ - shape_.padding[0], column + i % n_ - shape_.padding[1]);
    }
    for (int64_t i = 0; i < m_ * m_; ++i) {
      out_places[t * m_ * m_ + i] = look(output_, row + i / m_, column + i % m_);
    }
    block.rows[t] = block.data + t * block.data_row;
  }
  conv_kernels::transform_data(m_, {.places = block.in_places + begin * n_ * n_,
                                    .tiles = end - begin,
                                    .channels = shape_.in_channels,
                                    .out = block.data + begin * block.data_row,
                                    .part = block.data_part,
                                    .tile = block.data_row,
                                    .strip = kStrip});
  conv_kernels::transform_gradients(m_, {.places = out_places + begin * m_ * m_,
                                         .tiles = end - begin,
                                         .channels = shape_.out_channels,
                                         .out = block.other + begin * kStrip,
                                         .part = block.other_part,
                                         .tile = kStrip,
                                         .strip = block_ * kStrip});
}

void WeightGradient::add_lanes(const std::vector<Lane>& lanes) const {
  const int64_t chunks = strips(shape_.in_channels);
  parallel(strips(shape_.out_channels) * chunks, [&](int64_t part) {
    const int64_t filter = part / chunks * kStrip, channel = part % chunks * kStrip;
    const int64_t at = filter * shape_.in_channels + channel * kStrip;
    const int64_t count = std::min(kStrip, shape_.in_channels - channel) * kStrip;
    for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
      for (int64_t i = 0; i < n_ * n_; ++i) {
        conv_kernels::add(lanes[lane].sums + at + i * sum_part_, count, lanes[0].sums + at + i * sum_part_);
      }
    }
    write_filters(lanes[0].sums + at, sum_part_, filter, channel);
  });
}

void WeightGradient::write_filters(const float* sums, int64_t part, int64_t filter, int64_t channel) const {
  const int64_t rows = std::min(kStrip, shape_.out_channels - filter);
  const int64_t count = std::min(kStrip, shape_.in_channels - channel);
  alignas(64) std::array<float, kStrip * kPlaces * kStrip> turned;
  conv_kernels::fold_filters(m_, sums, part, count, turned.data());
  conv_kernels::from_strip(turned.data(), shape_.in_channels * kPlaces, rows, count * kPlaces,
                           weight_ + (filter * shape_.in_channels + channel) * kPlaces);
}

}  // namespace trireme::ops::winograd

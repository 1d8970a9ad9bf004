#include "trireme/ops/conv/tiled/weight_gradient.h"

#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/lanes.h"
#include "trireme/ops/conv/tiled/transform.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::tiled {

WeightGradient::WeightGradient(const ConvShape& shape, const Transform& transform)
    : shape_(shape), transform_(transform) {
  tiles_ = tiles_of(shape.batch, shape.out_height(), shape.out_width(), transform);
  few_ =
      transform.planes == 1 && tiles_.count() > 0 && few_tiles(shape.in_channels, shape.out_channels, tiles_.count());
  block_ = few_ ? tiles_.count() : block_tiles(transform, shape.in_channels, shape.out_channels, tiles_.count());
  sum_rows_ = transform.planes * shape.in_channels;
  sum_part_ = transform.planes * strips(shape.out_channels) * sum_rows_ * kStrip + kStrip;
  lanes_ = sum_lanes(transform_.parts * sum_part_, blocks());
}

int64_t WeightGradient::workspace(int64_t slots) const {
  Arena arena;
  arena.take<float>(zeros());
  if (few_) Block(arena, transform_, block_, shape_.in_channels, shape_.out_channels);
  for (int64_t slot = 0; few_ && slot < slots; ++slot) arena.take<float>(transform_.parts * kGroupPart);
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
  const Block block(arena, transform_, block_, shape_.in_channels, shape_.out_channels);
  parallel(block_, [&](int64_t tile) { read_tiles(block, 0, tile, tile + 1); });
  std::vector<float*> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.push_back(arena.take<float>(transform_.parts * kGroupPart));
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
  for (int64_t part = 0; part < transform_.parts; ++part) {
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
      write_filters({.first = sums + f * channels + c * kStrip, .part = kGroupPart}, filter + f, channel + c);
    }
  }
}

void WeightGradient::run_block(const Lane& lane, int64_t number, bool accumulate) const {
  const int64_t first = number * block_, count = std::min(block_, tiles_.count() - first);
  parallel((count + kTilesAtATime - 1) / kTilesAtATime, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime;
    read_tiles(lane.block, first, begin, std::min(begin + kTilesAtATime, count));
  });
  parallel(transform_.parts * transform_.planes, [&](int64_t index) {
    const int64_t part = index / transform_.planes, plane = index % transform_.planes;
    conv_kernels::multiply(
        conv_kernels::ColumnsProduct{.left = lane.block.rows,
                                     .left_offset = part * lane.block.data_part + plane * wide(shape_.in_channels),
                                     .row_count = shape_.in_channels,
                                     .length = count,
                                     .right = lane.block.other + part * lane.block.other_part,
                                     .right_strip = block_ * kStrip,
                                     .strip_count = transform_.planes * strips(shape_.out_channels),
                                     .out = lane.sums + part * sum_part_ + plane * shape_.in_channels * kStrip,
                                     .out_strip = sum_rows_ * kStrip,
                                     .accumulate = accumulate});
  });
}

void WeightGradient::read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const {
  const int64_t n = transform_.n, across = transform_.outputs[1], outputs = transform_.outputs[0] * across;
  const float** out_places = const_cast<const float**>(block.out_places);
  for (int64_t t = begin; t < end; ++t) {
    const auto [picture, row, column] = tiles_.place(first + t);
    const auto look = [&](const Pictures& pictures, int64_t h, int64_t w) {
      const float* place = pictures.at(picture, h, w);
      return place != nullptr ? place : zeros_;
    };
    for (int64_t i = 0; i < n * n; ++i) {
      block.in_places[t * n * n + i] =
          look(input_, row + i / n - shape_.padding[0], column + i % n - shape_.padding[1]);
    }
    for (int64_t i = 0; i < outputs; ++i)
      out_places[t * outputs + i] = look(output_, row + i / across, column + i % across);
    block.rows[t] = block.data + t * block.data_row;
  }
  transform_.data({.places = block.in_places + begin * n * n,
                   .tiles = end - begin,
                   .channels = shape_.in_channels,
                   .out = block.data + begin * block.data_row,
                   .part = block.data_part,
                   .plane = wide(shape_.in_channels),
                   .tile = block.data_row,
                   .strip = kStrip});
  transform_.gradients({.places = out_places + begin * outputs,
                        .tiles = end - begin,
                        .channels = shape_.out_channels,
                        .out = block.other + begin * kStrip,
                        .part = block.other_part,
                        .plane = wide(shape_.out_channels) * block_,
                        .tile = kStrip,
                        .strip = block_ * kStrip});
}

void WeightGradient::add_lanes(const std::vector<Lane>& lanes) const {
  const int64_t size = transform_.parts * sum_part_, piece = 1 << 14;
  parallel(lanes.size() > 1 ? (size + piece - 1) / piece : 0, [&](int64_t part) {
    const int64_t begin = part * piece, count = std::min(piece, size - begin);
    for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
      conv_kernels::add(lanes[lane].sums + begin, count, lanes[0].sums + begin);
    }
  });
  const int64_t chunks = strips(shape_.in_channels);
  parallel(strips(shape_.out_channels) * chunks, [&](int64_t part) {
    const int64_t filter = part / chunks * kStrip, channel = part % chunks * kStrip;
    write_filters({.first = lanes[0].sums + filter * sum_rows_ + channel * kStrip,
                   .part = sum_part_,
                   .row_plane = shape_.in_channels * kStrip,
                   .column_plane = wide(shape_.out_channels) * sum_rows_},
                  filter, channel);
  });
}

void WeightGradient::write_filters(FilterPlaces sums, int64_t filter, int64_t channel) const {
  const int64_t places = shape_.kernel[0] * shape_.kernel[1],
                at_once = std::clamp<int64_t>(kTurned / places, 1, kStrip);
  const int64_t rows = std::min(kStrip, shape_.out_channels - filter);
  const int64_t end = std::min(channel + kStrip, shape_.in_channels);
  alignas(64) std::array<float, kTurned * kStrip> turned;
  for (; channel < end; channel += at_once) {
    const int64_t count = std::min(at_once, end - channel);
    transform_.fold(sums, count, turned.data());
    conv_kernels::from_strip(turned.data(), shape_.in_channels * places, rows, count * places,
                             weight_ + (filter * shape_.in_channels + channel) * places);
    sums.first += count * kStrip;
  }
}

}  // namespace trireme::ops::tiled

#include "trireme/ops/conv/tiled/filtering.h"

#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/tiled/transform.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::tiled {

Filtering::Filtering(const ConvShape& shape, Pass pass, const Transform& transform)
    : shape_(shape), turned_(pass == Pass::data), transform_(transform) {
  channels_ = turned_ ? shape.out_channels : shape.in_channels;
  filters_ = turned_ ? shape.in_channels : shape.out_channels;
  from_ = {.height = shape.height, .width = shape.width, .channels = shape.in_channels};
  to_ = {.height = shape.out_height(), .width = shape.out_width(), .channels = shape.out_channels};
  if (turned_) std::swap(from_, to_);
  for (std::size_t side = 0; side < 2; ++side) {
    padding_[side] = turned_ ? shape.kernel[side] - 1 - shape.padding[side] : shape.padding[side];
  }
  tiles_ = tiles_of(shape.batch, to_.height, to_.width, transform);
  few_ = transform.planes == 1 && few_tiles(channels_, filters_, tiles_.count());
  block_ = few_ ? tiles_.count() : block_tiles(transform, channels_, filters_, tiles_.count());
  filter_rows_ = transform.planes * channels_;
  filter_part_ = few_ ? kGroup * kGroup + kStrip : transform.planes * strips(filters_) * filter_rows_ * kStrip + kStrip;
}

Filtering::Group::Group(Arena& arena, const Filtering& of)
    : filters(arena.take<float>(of.transform_.parts * of.filter_part_)),
      products(arena.take<float>(of.transform_.parts * of.product_part())),
      outs(arena.take<float*>(of.tiles_.count())) {}

int64_t Filtering::workspace(int64_t slots) const {
  Arena arena;
  arena.take<float>(wide(channels_));
  arena.take<float>(filters_size());
  if (few_) Block(arena, transform_, block_, channels_, 0);
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (few_) {
      Group(arena, *this);
    } else {
      Block(arena, transform_, block_, channels_, filters_);
    }
  }
  return arena.used();
}

int64_t Filtering::slots(std::span<std::byte> workspace) const {
  int64_t slots = 1;
  while (slots < threads() && this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) ++slots;
  return slots;
}

void Filtering::run(const ConvTensors& tensors, std::span<std::byte> workspace) {
  from_.data = turned_ ? tensors.output : tensors.input;
  to_.data = turned_ ? tensors.input : tensors.output;
  weight_ = tensors.weight;
  bias_ = turned_ ? nullptr : tensors.bias;
  Arena arena(workspace);
  zeros_ = arena.take<float>(wide(channels_));
  std::fill_n(zeros_, wide(channels_), 0.0f);
  filters_at_ = arena.take<float>(filters_size());
  few_ ? run_groups(arena, slots(workspace)) : run_blocks(arena, slots(workspace));
}

void Filtering::run_blocks(Arena& arena, int64_t slots) const {
  const int64_t chunks = strips(channels_);
  parallel(strips(filters_) * chunks, [&](int64_t part) {
    const int64_t filter = part / chunks * kStrip, channel = part % chunks * kStrip;
    transform_filters(filter, channel,
                      {.first = filters_at_ + filter * filter_rows_ + channel * kStrip,
                       .part = filter_part_,
                       .row_plane = channels_ * kStrip,
                       .column_plane = wide(filters_) * filter_rows_});
  });
  if (blocks() < 2 * threads()) slots = 1;  // few blocks are shared by the team, many are dealt out
  std::vector<Block> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, transform_, block_, channels_, filters_);
  std::atomic<int64_t> next = 0;
  parallel(slots, [&](int64_t slot) {
    for (int64_t block = next++; block < blocks(); block = next++)
      run_block(own[static_cast<std::size_t>(slot)], block);
  });
}

void Filtering::run_groups(Arena& arena, int64_t slots) const {
  const Block block(arena, transform_, block_, channels_, 0);
  parallel(block_, [&](int64_t tile) { read_tiles(block, 0, tile, tile + 1); });
  std::vector<Group> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, *this);
  // Smaller groups where there would be too few for the team; the sums stay the same.
  const int64_t size = filters_ >= 2 * slots * kGroup ? kGroup : kGroup / 2;
  std::atomic<int64_t> next = 0;
  parallel(slots, [&](int64_t slot) {
    for (int64_t filter = size * next++; filter < filters_; filter = size * next++) {
      run_group(block, own[static_cast<std::size_t>(slot)], filter, std::min(size, filters_ - filter));
    }
  });
}

void Filtering::run_group(const Block& block, const Group& group, int64_t filter, int64_t count) const {
  for (int64_t t = 0; t < block_; ++t) group.outs[t] = group.products + t * kGroup;
  for (int64_t channel = 0; channel < channels_; channel += kGroup) {
    const int64_t channels = std::min(kGroup, channels_ - channel);
    for (int64_t f = 0; f < count; f += kStrip) {
      for (int64_t c = 0; c < channels; c += kStrip) {
        transform_filters(filter + f, channel + c,
                          {.first = group.filters + f * channels + c * kStrip, .part = filter_part_});
      }
    }
    for (int64_t part = 0; part < transform_.parts; ++part) {
      const int64_t tap = part * block.data_part + channel;
      conv_kernels::multiply(conv_kernels::RowsProduct{.rows = block.rows,
                                                       .row_count = block_,
                                                       .taps = &tap,
                                                       .tap_count = 1,
                                                       .run = channels,
                                                       .right = group.filters + part * filter_part_,
                                                       .right_strip = channels * kStrip,
                                                       .columns = wide(count),
                                                       .out = group.outs,
                                                       .out_offset = part * product_part(),
                                                       .accumulate = channel > 0});
    }
  }
  transform_.products({.in = group.products,
                       .part = product_part(),
                       .tile = kGroup,
                       .places = block.out_places,
                       .offset = filter,
                       .tiles = block_,
                       .channels = count,
                       .bias = bias_ != nullptr ? bias_ + filter : nullptr});
}

void Filtering::transform_filters(int64_t filter, int64_t channel, FilterPlaces to) const {
  const int64_t places = shape_.kernel[0] * shape_.kernel[1],
                at_once = std::clamp<int64_t>(kTurned / places, 1, kStrip);
  const int64_t lanes = std::min(kStrip, filters_ - filter), end = std::min(channel + kStrip, channels_);
  alignas(64) std::array<float, kTurned * kStrip> turned;
  for (; channel < end; channel += at_once) {
    const int64_t count = std::min(at_once, end - channel);
    if (turned_) {
      for (int64_t c = 0; c < count; ++c) {
        conv_kernels::to_strip(weight_ + ((channel + c) * filters_ + filter) * places, places, lanes, places,
                               turned.data() + c * places * kStrip);
      }
    } else {
      conv_kernels::to_strip(weight_ + (filter * channels_ + channel) * places, channels_ * places, lanes,
                             count * places, turned.data());
    }
    transform_.filters(turned.data(), turned_, count, to);
    to.first += count * kStrip;
  }
}

void Filtering::run_block(const Block& block, int64_t number) const {
  const int64_t first = number * block_, count = std::min(block_, tiles_.count() - first);
  const int64_t pieces = (count + kTilesAtATime - 1) / kTilesAtATime;
  parallel(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime, end = std::min(begin + kTilesAtATime, count);
    read_tiles(block, first, begin, end);
  });
  parallel(transform_.parts, [&](int64_t part) {
    const std::array<int64_t, 2> taps{part * block.data_part, part * block.data_part + wide(channels_)};
    conv_kernels::multiply(conv_kernels::RowsProduct{.rows = block.rows,
                                                     .row_count = count,
                                                     .taps = taps.data(),
                                                     .tap_count = transform_.planes,
                                                     .run = channels_,
                                                     .right = filters_at_ + part * filter_part_,
                                                     .right_strip = filter_rows_ * kStrip,
                                                     .columns = transform_.planes * wide(filters_),
                                                     .out = block.outs,
                                                     .out_offset = part * block.other_part});
  });
  parallel(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime, end = std::min(begin + kTilesAtATime, count);
    write_tiles(block, begin, end);
  });
}

void Filtering::read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const {
  const int64_t n = transform_.n, across = transform_.outputs[1], outputs = transform_.outputs[0] * across;
  for (int64_t t = begin; t < end; ++t) {
    const auto [picture, row, column] = tiles_.place(first + t);
    const float** in = block.in_places + t * n * n;
    for (int64_t i = 0; i < n * n; ++i) {
      const float* place = from_.at(picture, row + i / n - padding_[0], column + i % n - padding_[1]);
      in[i] = place != nullptr ? place : zeros_;
    }
    float** out = block.out_places + t * outputs;
    for (int64_t i = 0; i < outputs; ++i) out[i] = to_.at(picture, row + i / across, column + i % across);
    block.rows[t] = block.data + t * block.data_row;
    block.outs[t] = block.other + t * block.other_row;
  }
  transform_.data({.places = block.in_places + begin * n * n,
                   .tiles = end - begin,
                   .channels = channels_,
                   .out = block.data + begin * block.data_row,
                   .part = block.data_part,
                   .plane = wide(channels_),
                   .tile = block.data_row,
                   .strip = kStrip});
}

void Filtering::write_tiles(const Block& block, int64_t begin, int64_t end) const {
  transform_.products({.in = block.other + begin * block.other_row,
                       .part = block.other_part,
                       .plane = wide(filters_),
                       .tile = block.other_row,
                       .places = block.out_places + begin * transform_.outputs[0] * transform_.outputs[1],
                       .tiles = end - begin,
                       .channels = filters_,
                       .bias = bias_});
}

}  // namespace trireme::ops::tiled

#include "trireme/ops/conv/winograd/filtering.h"

#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/winograd/winograd_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::winograd {

Filtering::Filtering(const ConvShape& shape, Pass pass, int m)
    : shape_(shape), turned_(pass == Pass::data), m_(m), n_(m + 2) {
  channels_ = turned_ ? shape.out_channels : shape.in_channels;
  filters_ = turned_ ? shape.in_channels : shape.out_channels;
  from_ = {.height = shape.height, .width = shape.width, .channels = shape.in_channels};
  to_ = {.height = shape.out_height(), .width = shape.out_width(), .channels = shape.out_channels};
  if (turned_) std::swap(from_, to_);
  for (std::size_t side = 0; side < 2; ++side) {
    padding_[side] = turned_ ? 2 - shape.padding[side] : shape.padding[side];
  }
  tiles_ = tiles_of(shape.batch, to_.height, to_.width, m);
  block_ = block_tiles(n_, channels_, filters_, tiles_.count());
  filter_part_ = strips(filters_) * channels_ * kStrip + kStrip;
}

int64_t Filtering::workspace(int64_t slots) const {
  Arena arena;
  arena.take<float>(shared());
  for (int64_t slot = 0; slot < slots; ++slot) Block(arena, m_, block_, channels_, filters_);
  return arena.used();
}

void Filtering::run(const ConvTensors& tensors, std::span<std::byte> workspace) {
  from_.data = turned_ ? tensors.output : tensors.input;
  to_.data = turned_ ? tensors.input : tensors.output;
  bias_ = turned_ ? nullptr : tensors.bias;
  Arena arena(workspace);
  filters_at_ = arena.take<float>(shared());
  zeros_ = filters_at_ + n_ * n_ * filter_part_;
  std::fill_n(zeros_, wide(channels_), 0.0f);
  transform_filters(tensors.weight);
  // Few blocks are shared by the team, many are dealt out.
  int64_t slots = 1;
  if (blocks() >= 2 * threads()) {
    while (slots < threads() && this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) ++slots;
  }
  std::atomic<int64_t> next = 0;
  std::vector<Block> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, m_, block_, channels_, filters_);
  parallel(slots, [&](int64_t slot) {
    for (int64_t block = next++; block < blocks(); block = next++)
      run_block(own[static_cast<std::size_t>(slot)], block);
  });
}

void Filtering::transform_filters(const float* weight) const {
  const int64_t chunks = strips(channels_);
  parallel(strips(filters_) * chunks, [&](int64_t part) {
    const int64_t filter = part / chunks * kStrip, channel = part % chunks * kStrip;
    const int64_t lanes = std::min(kStrip, filters_ - filter), count = std::min(kStrip, channels_ - channel);
    alignas(64) std::array<float, kStrip * kPlaces * kStrip> turned;
    if (turned_) {
      for (int64_t c = 0; c < count; ++c) {
        conv_kernels::to_strip(weight + ((channel + c) * filters_ + filter) * kPlaces, kPlaces, lanes, kPlaces,
                               turned.data() + c * kPlaces * kStrip);
      }
    } else {
      conv_kernels::to_strip(weight + (filter * channels_ + channel) * kPlaces, channels_ * kPlaces, lanes,
                             count * kPlaces, turned.data());
    }
    conv_kernels::transform_filters(m_, turned.data(), turned_, count,
                                    filters_at_ + filter * channels_ + channel * kStrip, filter_part_);
  });
}

void Filtering::run_block(const Block& block, int64_t number) const {
  const int64_t first = number * block_, count = std::min(block_, tiles_.count() - first);
  const int64_t pieces = (count + kTilesAtATime - 1) / kTilesAtATime;
  parallel(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime, end = std::min(begin + kTilesAtATime, count);
    read_tiles(block, first, begin, end);
  });
  parallel(n_ * n_, [&](int64_t part) {
    const int64_t tap = part * block.data_part;
    conv_kernels::multiply(conv_kernels::RowsProduct{.rows = block.rows,
                                                     .row_count = count,
                                                     .taps = &tap,
                                                     .tap_count = 1,
                                                     .run = channels_,
                                                     .right = filters_at_ + part * filter_part_,
                                                     .right_strip = channels_ * kStrip,
                                                     .columns = wide(filters_),
                                                     .out = block.outs,
                                                     .out_offset = part * block.other_part});
  });
  parallel(pieces, [&](int64_t piece) {
    const int64_t begin = piece * kTilesAtATime, end = std::min(begin + kTilesAtATime, count);
    write_tiles(block, begin, end);
  });
}

void Filtering::read_tiles(const Block& block, int64_t first, int64_t begin, int64_t end) const {
  for (int64_t t = begin; t < end; ++t) {
    const auto [picture, row, column] = tiles_.place(first + t);
    const float** in = block.in_places + t * n_ * n_;
    for (int64_t i = 0; i < n_ * n_; ++i) {
      const float* place = from_.at(picture, row + i / n_ - padding_[0], column + i % n_ - padding_[1]);
      in[i] = place != nullptr ? place : zeros_;
    }
    float** out = block.out_places + t * m_ * m_;
    for (int64_t i = 0; i < m_ * m_; ++i) out[i] = to_.at(picture, row + i / m_, column + i % m_);
    block.rows[t] = block.data + t * block.data_row;
    block.outs[t] = block.other + t * block.other_row;
  }
  conv_kernels::transform_data(m_, {.places = block.in_places + begin * n_ * n_,
                                    .tiles = end - begin,
                                    .channels = channels_,
                                    .out = block.data + begin * block.data_row,
                                    .part = block.data_part,
                                    .tile = block.data_row,
                                    .strip = kStrip});
}

void Filtering::write_tiles(const Block& block, int64_t begin, int64_t end) const {
  conv_kernels::transform_products(m_, {.in = block.other + begin * block.other_row,
                                        .part = block.other_part,
                                        .tile = block.other_row,
                                        .places = block.out_places + begin * m_ * m_,
                                        .tiles = end - begin,
                                        .channels = filters_,
                                        .bias = bias_});
}
}  // namespace trireme::ops::winograd

#include "trireme/ops/conv/padded/scattering.h"

#include <algorithm>

#include "trireme/ops/aligned.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/conv/lanes.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::padded {

using internal::Bf16Tiles;
using internal::kBf16Line;
using internal::kBf16Panel;
using internal::kBf16Strip;

namespace {

constexpr int64_t kScatteredBytes = 1024 * 1024;         // of a block, both factors: stays in the second-level cache
constexpr int64_t kStripPairs = kBf16Line * kBf16Strip;  // of a line

// Where the sums, which every block reads and writes, are far larger than a block, it may be larger too.
int64_t slots_at_once(const ConvShape& shape) {
  return std::max(kScatteredBytes, shape.weight_size()) / 2 / (2 * shape.in_channels + shape.out_channels);
}

}  // namespace

Scattering::Scattering(const internal::Bf16Kernel& kernel, const ConvShape& shape)
    : kernel_(kernel),
      shape_(shape),
      image_(im2col::forward_axis(shape, 0), im2col::forward_axis(shape, 1), shape.batch, shape.in_channels,
             slots_at_once(shape), sum_lanes(shape.weight_size(), shape.batch)),
      places_(image_.places()) {
  if (std::any_of(places_.begin(), places_.end(), [](int64_t place) { return place % 2 == 1; })) copies_ = 2;
  lanes_ = sum_lanes(sums(), image_.blocks());
}

Scattering::Lane::Lane(Arena& arena, const Scattering& of)
    : sums(arena.take<float>(of.sums())),
      rows(arena.take<float*>(of.shape_.out_channels)),
      pixels(arena.take<const float*>(of.image_.pixels())),
      gradients(arena.take<const float*>(of.image_.most_slots())),
      tiles(arena.take<uint32_t>(of.shape_.out_channels * internal::bf16_lines(of.image_.most_slots()) * kBf16Line)),
      strips(arena.take<uint32_t>(of.copies_ * of.channel_strips() * of.strip_lines() * kStripPairs)),
      zeros(arena.take<float>(std::max(of.shape_.in_channels, of.shape_.out_channels))) {}

int64_t Scattering::workspace() const {
  Arena arena;
  for (int64_t lane = 0; lane < lanes_; ++lane) Lane(arena, *this);
  return arena.used();
}

double Scattering::bytes() const {
  const auto blocks = static_cast<double>(image_.blocks());
  // Source and gradient once, and the rows that blocks share; the sums written, and read to be added or stored.
  return 4 * (blocks * static_cast<double>(image_.pixels() * shape_.in_channels) +
              static_cast<double>(shape_.output_size() + shape_.weight_size()) +
              2 * std::max(blocks, 1.0) * static_cast<double>(sums()));
}

double Scattering::products() const {
  return static_cast<double>(image_.blocks() * internal::bf16_lines(image_.most_slots()) * 2 * kBf16Line) *
         static_cast<double>(sums());
}

void Scattering::run(const ConvTensors& tensors, std::span<std::byte> workspace) const {
  Arena arena(workspace);
  std::vector<Lane> lanes;
  for (int64_t lane = 0; lane < lanes_; ++lane) lanes.emplace_back(arena, *this);
  if (image_.blocks() == 0) std::fill_n(lanes[0].sums, sums(), 0.0f);
  each_lane(lanes_, [&](int64_t lane) {
    for (int64_t block = lane; block < image_.blocks(); block += lanes_) {
      run_block(tensors, lanes[static_cast<std::size_t>(lane)], image_.block(block), block >= lanes_);
    }
  });
  parallel(shape_.out_channels, [&](int64_t filter) {
    float* const sum = lanes[0].sums + filter * row();
    for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
      conv_kernels::add(lanes[lane].sums + filter * row(), row(), sum);
    }
    write_filter(sum, tensors.weight + filter * shape_.weight_size() / shape_.out_channels);
  });
}

void Scattering::pack(const ConvTensors& tensors, const Lane& lane, const Block& block) const {
  const int64_t filters = shape_.out_channels, channels = shape_.in_channels;
  const int64_t slots = image_.slots(block), lines = internal::bf16_lines(slots);
  std::fill_n(lane.zeros, std::max(channels, filters), 0.0f);
  image_.point(tensors.input, block, lane.zeros, lane.pixels);
  std::fill_n(lane.gradients, slots, lane.zeros);
  image_.each_output(block, [&](int64_t at, int64_t n, int64_t p, int64_t q) {
    lane.gradients[at] = tensors.output + ((n * shape_.out_height() + p) * shape_.out_width() + q) * filters;
  });
  const Bf16Tiles tiles(filters, kernel_.rows);
  parallel(tiles.count, [&](int64_t tile) {
    internal::bf16_pack_tile_of_columns(*kernel_.packing, lane.gradients, slots, tiles.begin(tile), tiles.size(tile),
                                        lines, lane.tiles + tiles.begin(tile) * lines * kBf16Line);
  });
  parallel(copies_ * channel_strips(), [&](int64_t strip) {
    const int64_t odd = strip / channel_strips(), channel = strip % channel_strips() * kBf16Strip;
    kernel_.packing->strip(lane.pixels + odd, image_.pixels() - odd, channel, std::min(kBf16Strip, channels - channel),
                           strip_lines(), lane.strips + strip * strip_lines() * kStripPairs);
  });
}

void Scattering::run_block(const ConvTensors& tensors, const Lane& lane, const Block& block, bool accumulate) const {
  pack(tensors, lane, block);
  for (int64_t i = 0; i < shape_.out_channels; ++i) lane.rows[i] = lane.sums + i * row();
  const int64_t place_sums = channel_strips() * kBf16Strip, panels = (channel_strips() + 1) / 2;
  parallel(static_cast<int64_t>(places_.size()) * panels, [&](int64_t it) {
    const int64_t number = it / panels, channel = it % panels * kBf16Panel;
    const int64_t place = places_[static_cast<std::size_t>(number)];
    const int64_t strip = place % 2 * channel_strips() + channel / kBf16Strip;
    kernel_.multiply({.a = lane.tiles,
                      .rows = shape_.out_channels,
                      .lines = internal::bf16_lines(image_.slots(block)),
                      .b = lane.strips + strip * strip_lines() * kStripPairs + place / 2 * kBf16Strip,
                      .b_strip = strip_lines() * kStripPairs,
                      .c = lane.rows,
                      .c_offset = number * place_sums + channel,
                      .columns = std::min(kBf16Panel, place_sums - channel),
                      .add = accumulate});
  });
}

// A filter's sums lie by place, then channel.
void Scattering::write_filter(const float* sums, float* weight) const {
  const auto places = static_cast<int64_t>(places_.size());
  AlignedFloats strip(places * kBf16Strip);
  for (int64_t channel = 0; channel < shape_.in_channels; channel += kBf16Strip) {
    for (int64_t place = 0; place < places; ++place) {
      std::copy_n(sums + place * channel_strips() * kBf16Strip + channel, kBf16Strip,
                  strip.data() + place * kBf16Strip);
    }
    conv_kernels::from_strip(strip.data(), places, std::min(kBf16Strip, shape_.in_channels - channel), places,
                             weight + channel * places);
  }
}

}  // namespace trireme::ops::padded

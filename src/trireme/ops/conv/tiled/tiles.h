// What both directions of transformed convolution share: pictures, their tiles, and the memory of a block of them.
#pragma once
#include <algorithm>
#include <array>

#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/conv/tiled/transform.h"

namespace trireme::ops::tiled {

using conv_kernels::kStrip;
using conv_kernels::strips;

inline constexpr int64_t kTurned = 400;  // places of filters turned at a time: the most that a filter has

// Rows and matrices of the transforms start at different places of a cache's sets, whatever the channels.
constexpr int64_t spread(int64_t elements) { return elements % 128 == 0 ? elements + kStrip : elements; }
constexpr int64_t wide(int64_t channels) { return strips(channels) * kStrip; }

// Pictures of `channels`, one after the other.
struct Pictures {
  float* data = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  float* at(int64_t n, int64_t h, int64_t w) const {
    const bool inside = h >= 0 && h < height && w >= 0 && w < width;
    return inside ? data + ((n * height + h) * width + w) * channels : nullptr;
  }
};

// The tiles of all outputs, numbered through.
struct Tiles {
  int64_t batch = 0;
  int64_t down = 0;
  int64_t across = 0;
  std::array<int64_t, 2> step{1, 1};
  int64_t count() const { return batch * down * across; }

  // The picture, row and column of a tile's first output.
  std::array<int64_t, 3> place(int64_t tile) const {
    return {tile / (down * across), tile / across % down * step[0], tile % across * step[1]};
  }
};

inline Tiles tiles_of(int64_t batch, int64_t height, int64_t width, const Transform& transform) {
  const auto [m_down, m_across] = transform.outputs;
  return {.batch = batch,
          .down = (height + m_down - 1) / m_down,
          .across = (width + m_across - 1) / m_across,
          .step = transform.outputs};
}

// Tiles of a block: the transforms of both sides take about 768 KiB, a second-level cache less what flows through.
inline int64_t block_tiles(const Transform& transform, int64_t channels, int64_t filters, int64_t tiles) {
  const int64_t fit = (768 << 10) / (4 * transform.parts * transform.planes * (wide(channels) + wide(filters)));
  const int64_t rows = std::clamp<int64_t>(fit / 12 * 12, transform.planes == 1 ? 48 : 24, 240);
  return std::min(rows, std::max<int64_t>(tiles, 1));
}

// Where tiles are few and filters many, the transformed filters are what does not stay in cache: then all tiles are
// transformed once, and groups of so many filters and channels go through all stages. By the shape alone, for the order
// of sums depends on it.
inline constexpr int64_t kGroup = 64;
inline bool few_tiles(int64_t channels, int64_t filters, int64_t tiles) {
  return tiles <= 64 && channels * filters >= 256 * 256;
}

inline constexpr int64_t kTilesAtATime = 4;  // of a transform, where one block is shared by the team

// What one thread needs for a block of tiles.
struct Block {
  float* data = nullptr;  // matrices of tiles × channels
  int64_t data_row = 0, data_part = 0;
  float* other = nullptr;  // products, tiles × filters; or the gradients' transforms, strips of tiles
  int64_t other_row = 0, other_part = 0;
  const float** in_places = nullptr;
  float** out_places = nullptr;
  const float** rows = nullptr;
  float** outs = nullptr;

  Block(Arena& arena, const Transform& it, int64_t tiles, int64_t channels, int64_t filters) {
    data_row = spread(it.planes * wide(channels));
    data_part = tiles * data_row + kStrip;
    other_row = spread(it.planes * wide(filters));
    other_part = tiles * other_row + kStrip;
    data = arena.take<float>(it.parts * data_part);
    other = arena.take<float>(it.parts * other_part);
    in_places = arena.take<const float*>(tiles * it.n * it.n);
    out_places = arena.take<float*>(tiles * it.outputs[0] * it.outputs[1]);
    rows = arena.take<const float*>(tiles);
    outs = arena.take<float*>(tiles);
  }
};

}  // namespace trireme::ops::tiled

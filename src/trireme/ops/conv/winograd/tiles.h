// What both kinds of Winograd's products share: pictures, their tiles, and the memory of a block of them.
#pragma once
#include <algorithm>
#include <array>

#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/kernels/product_kernels.h"

namespace trireme::ops::winograd {

using conv_kernels::kStrip;
using conv_kernels::strips;

inline constexpr int64_t kPlaces = 9;  // of a filter

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
  int m = 0;
  int64_t count() const { return batch * down * across; }

  // The picture, row and column of a tile's first output.
  std::array<int64_t, 3> place(int64_t tile) const {
    return {tile / (down * across), tile / across % down * m, tile % across * m};
  }
};

inline Tiles tiles_of(int64_t batch, int64_t height, int64_t width, int m) {
  return {.batch = batch, .down = (height + m - 1) / m, .across = (width + m - 1) / m, .m = m};
}

// Tiles of a block: the transforms of both sides take about 768 KiB, a second-level cache less what flows through.
inline int64_t block_tiles(int n, int64_t channels, int64_t filters, int64_t tiles) {
  const int64_t fit = (768 << 10) / (4 * n * n * (wide(channels) + wide(filters)));
  const int64_t rows = std::clamp<int64_t>(fit / 12 * 12, 48, 240);
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
  float* data = nullptr;  // n² matrices of tiles × channels
  int64_t data_row = 0, data_part = 0;
  float* other = nullptr;  // products, tiles × filters; or the gradients' transforms, strips of tiles
  int64_t other_row = 0, other_part = 0;
  const float** in_places = nullptr;
  float** out_places = nullptr;
  const float** rows = nullptr;
  float** outs = nullptr;

  Block(Arena& arena, int m, int64_t tiles, int64_t channels, int64_t filters) {
    const int64_t n = m + 2;
    data_row = spread(wide(channels));
    data_part = tiles * data_row + kStrip;
    other_row = spread(wide(filters));
    other_part = tiles * other_row + kStrip;
    data = arena.take<float>(n * n * data_part);
    other = arena.take<float>(n * n * other_part);
    in_places = arena.take<const float*>(tiles * n * n);
    out_places = arena.take<float*>(tiles * m * m);
    rows = arena.take<const float*>(tiles);
    outs = arena.take<float*>(tiles);
  }
};

}  // namespace trireme::ops::winograd

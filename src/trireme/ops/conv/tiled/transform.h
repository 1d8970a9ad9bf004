// What transformed convolution needs of a transform, Winograd's or Fourier's: tiles of n × n inputs and filters become
// vectors of `parts` elements in which convolution is a product of each element with its like, summed over channels
// (or tiles): `parts` products of matrices. Vectors run over channels.
//
// Elements of two planes are complex: the real and the imaginary part of each. A product of matrices then has both
// parts of the data side by side in its rows, 2 · channels, and both parts of the result in its columns.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::ops::tiled {

// Tiles of a picture as pointers to the first channel of each of their places, row by row. Element e of the transform
// of 16 channels goes to out + e · part + plane · `plane` + tile · `tile` + (channel / 16) · strip, zeros beyond the
// channels.
struct TileRead {
  const float* const* places = nullptr;
  int64_t tiles = 0;
  int64_t channels = 0;
  float* out = nullptr;
  int64_t part = 0;   // elements from one matrix to the next
  int64_t plane = 0;  // from real to imaginary parts
  int64_t tile = 0;
  int64_t strip = 0;
};

// The way back: from in + e · part + plane · `plane` + tile · `tile` + channel to the places that are not null, with
// bias added.
struct TileWrite {
  const float* in = nullptr;
  int64_t part = 0;
  int64_t plane = 0;
  int64_t tile = 0;
  float* const* places = nullptr;
  int64_t offset = 0;  // elements, added to each
  int64_t tiles = 0;
  int64_t channels = 0;
  const float* bias = nullptr;
};

// Transformed filters as right factors, 16 filters to a row, `part` elements from matrix to matrix; with two planes at
// four places: of the data's part (rows) and of the result's (columns).
struct FilterPlaces {
  float* first = nullptr;
  int64_t part = 0;
  int64_t row_plane = 0;
  int64_t column_plane = 0;
};

class Transform {
 public:
  virtual ~Transform() = default;
  Transform(int side, std::array<int64_t, 2> of, int64_t matrices, int of_each)
      : n(side), kernel(of), outputs{side - of[0] + 1, side - of[1] + 1}, parts(matrices), planes(of_each) {}

  virtual void data(const TileRead& read) const = 0;       // of n × n places
  virtual void gradients(const TileRead& read) const = 0;  // of outputs[0] × outputs[1] places
  virtual void products(const TileWrite& write) const = 0;
  // Of `count` filters in each of 16 lanes, from[filter][place of the kernel][16]; `rotated`: by half a turn.
  virtual void filters(const float* from, bool rotated, int64_t count, const FilterPlaces& to) const = 0;
  // The reverse direction, from sums of data times gradients.
  virtual void fold(const FilterPlaces& from, int64_t count, float* to) const = 0;

  // Of those that multiply by matrices: their names and elements, for drawings.
  struct Named {
    std::string name;
    std::vector<std::vector<std::string>> rows;
  };
  virtual std::vector<Named> matrices() const { return {}; }

  const int n;
  const std::array<int64_t, 2> kernel;
  const std::array<int64_t, 2> outputs;  // of a tile
  const int64_t parts;
  const int planes;  // 1: real, 2: complex
};

}  // namespace trireme::ops::tiled

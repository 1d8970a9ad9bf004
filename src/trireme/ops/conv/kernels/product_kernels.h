// Products whose left factor is read where it lies, for every SIMD target: rows of pixels are found by pointers, so no
// image is copied into columns. The right factor lies in strips: 16 columns of every row, one after the other, the last
// ones zero where there are fewer. Each element is summed in the order of the rows of its right factor, whatever the
// target, the strips and rows done at a time.
#pragma once
#include <cstdint>

namespace trireme::ops::conv_kernels {

inline constexpr int64_t kStrip = 16;
constexpr int64_t strips(int64_t columns) { return (columns + kStrip - 1) / kStrip; }

// out[i][j] (+)= Σ over taps t and l < run of rows[i][taps[t] + l] · right[t · run + l][j], + bias[j].
struct RowsProduct {
  const float* const* rows = nullptr;
  int64_t row_count = 0;
  const int64_t* taps = nullptr;  // elements
  int64_t tap_count = 0;
  int64_t run = 0;
  const float* right = nullptr;  // first strip
  int64_t right_strip = 0;       // elements between strips
  int64_t columns = 0;
  float* const* out = nullptr;  // one a row
  int64_t out_offset = 0;       // elements, added to each
  const float* bias = nullptr;
  bool accumulate = false;
};
void multiply(const RowsProduct& product);

// out[i][j] (+)= Σ over l < length of left[l][left_offset + i] · right[l][j], the columns a whole number of strips; so
// are those of out: strip after strip, `out_strip` elements apart, each a row of 16 for every i.
struct ColumnsProduct {
  const float* const* left = nullptr;
  int64_t left_offset = 0;
  int64_t row_count = 0;  // i
  int64_t length = 0;
  const float* right = nullptr;  // first strip
  int64_t right_strip = 0;       // elements between strips
  int64_t strip_count = 0;
  float* out = nullptr;
  int64_t out_strip = 0;
  bool accumulate = false;
};
void multiply(const ColumnsProduct& product);

// to[j][i] = from[i · stride + j] for i < rows ≤ 16, j < columns; zeros for the other i.
void to_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to);
// to[i · stride + j] = from[j][i].
void from_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to);

// to[i][j] = from[i · stride + j] for j < columns ≤ 16; zeros for the other j.
void copy_strip(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to);
// to += from
void add(const float* from, int64_t count, float* to);

}  // namespace trireme::ops::conv_kernels

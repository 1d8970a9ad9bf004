// Pixels of pictures by address, with zeros around: what would be the rows of im2col's matrix, without the matrix. A
// block of outputs reads from a copy of its part of the pictures with a border of zeros, which stays in cache, or from
// the pictures themselves where nothing outside is read.
#pragma once
#include <vector>

#include "trireme/ops/conv/im2col/axis.h"

namespace trireme::ops::im2col {

// A run of elements side by side that every output multiplies: places of the kernel times channels.
struct Taps {
  std::vector<int64_t> offsets;  // elements from an output's first pixel
  int64_t run = 0;               // elements of each
};

// Outputs: some rows of one picture, or some whole pictures.
struct OutputBlock {
  int64_t picture = 0;
  int64_t pictures = 1;
  int64_t row = 0;
  int64_t rows = 0;
};

class Window {
 public:
  Window(Axis down, Axis across, int64_t batch, int64_t channels, int64_t groups, int64_t pixels_of_block);

  const Axis& down() const { return down_; }
  const Axis& across() const { return across_; }
  int64_t blocks() const { return blocks_; }
  OutputBlock block(int64_t number) const;
  int64_t pixels() const { return most_pictures_ * most_rows_ * across_.count; }  // the most that a block has
  int64_t pixels(const OutputBlock& block) const { return block.pictures * block.rows * across_.count; }
  int64_t copied() const;  // elements that prepare() needs
  const Taps& taps() const { return taps_; }
  int64_t length() const { return static_cast<int64_t>(taps_.offsets.size()) * taps_.run; }  // of a sum

  // The pixels of a block's outputs: pointers to their first tap, of the first channel.
  void prepare(const float* source, const OutputBlock& block, float* copy, const float** pixels) const;

 private:
  void copy_rows(const float* source, const OutputBlock& block, float* copy) const;

  Axis down_, across_;
  int64_t batch_, channels_;
  bool copies_;
  int64_t most_rows_ = 1, most_pictures_ = 1, blocks_ = 0;
  Taps taps_;
};

// Where a block's outputs lie: pointers into `out`, pictures of so many rows and columns of `channels`.
void point_outputs(const Window& window, const OutputBlock& block, float* out, int64_t height, int64_t width,
                   int64_t channels, float** outs);

// Calls body(down, across) for each product that the pass, forward or the gradient of data, is made of.
template <class Body>
void each_gathering(const ConvShape& shape, Pass pass, const Body& body) {
  if (pass == Pass::forward) return body(forward_axis(shape, 0), forward_axis(shape, 1));
  for (int64_t down = 0; down < shape.stride[0]; ++down) {
    for (int64_t across = 0; across < shape.stride[1]; ++across) {
      body(gradient_axis(shape, 0, down), gradient_axis(shape, 1, across));
    }
  }
}

}  // namespace trireme::ops::im2col

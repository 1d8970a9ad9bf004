// Pictures in bf16 with zeros around them, from which tiles of pixels are read where they lie: no pixel is packed
// twice.
//
//   plane  the places of a picture that lie a step apart, of one phase of the step down and one across; with step 1
//          there is one. Within a plane, an output's next place is the next pixel.
//   pitch  pixels from a row of a plane to the next. Zeros to the right of a row are those to the left of the next
//   line   32 channels as 16 pairs (ops/matmul/bf16_kernels.h); zeros follow the last channel
//   slot   an output's number in a block: rows follow each other by the pitch, pictures by whole rows. Slots at the
//          ends of rows, and in the rows between two pictures, belong to no output
//
// Output i of a row reads slot i's pixel and, for each place of the kernel, one a constant distance behind it: so 16
// slots that follow each other are a tile for every place, also beyond the end of a row.
#pragma once
#include <vector>

#include "trireme/ops/conv/im2col/axis.h"
#include "trireme/ops/matmul/bf16_kernels.h"

namespace trireme::ops::padded {

using im2col::Axis;

// One side of the planes.
struct PlaneAxis {
  struct Place {
    int64_t phase = 0;  // its number among `phases`
    int64_t shift = 0;  // pixels of the plane from an output's first
  };
  explicit PlaneAxis(const Axis& axis);

  std::vector<int64_t> phases;  // those that are read
  std::vector<Place> places;    // of the kernel, as Axis::offsets
  int64_t shift = 0;            // the largest
  int64_t pitch = 1;            // enough for all phases
};

// Some rows of outputs of one picture, or of some whole pictures.
struct Block {
  int64_t picture = 0;
  int64_t pictures = 1;
  int64_t row = 0;
  int64_t rows = 0;
};

class PaddedImage {
 public:
  // Blocks of at most `most` pixels, but of one row; at least `blocks` of them, where they are not very small.
  PaddedImage(const Axis& down, const Axis& across, int64_t batch, int64_t channels, int64_t most, int64_t blocks);

  int64_t blocks() const { return blocks_; }
  Block block(int64_t number) const;
  int64_t slots(const Block& block) const {
    return ((block.pictures - 1) * rows_ + block.rows - 1) * columns_.pitch + across_.count;
  }
  int64_t most_slots() const { return blocks_ == 0 ? 0 : slots({0, most_pictures_, 0, most_rows_}); }

  int64_t lines() const { return internal::bf16_lines(channels_); }  // of a pixel
  int64_t pixel() const { return lines() * internal::kBf16Line; }    // pairs
  int64_t pixels() const { return planes() * plane_; }               // of the image of a block
  int64_t pairs() const { return pixels() * pixel(); }
  // From a slot to the pixel of each place of the kernel, down and across.
  std::vector<int64_t> places() const;
  // From a slot's pixel to each line that it multiplies, pairs: places of the kernel, then lines.
  std::vector<int64_t> steps() const;

  // The image of a block of `source`, [batch][height][width][channels].
  void fill(const internal::Bf16Packing& packing, const float* source, const Block& block, uint32_t* image) const;
  // The same image as pointers to its pixels; `zeros` where there are zeros.
  void point(const float* source, const Block& block, const float* zeros, const float** pixels) const;
  // Calls body(slot, picture, row, column) for each output.
  template <class Body>
  void each_output(const Block& block, const Body& body) const {
    for (int64_t n = 0; n < block.pictures; ++n) {
      for (int64_t p = 0; p < block.rows; ++p) {
        const int64_t slot = (n * rows_ + p) * columns_.pitch;
        for (int64_t q = 0; q < across_.count; ++q) body(slot + q, block.picture + n, block.row + p, q);
      }
    }
  }

 private:
  int64_t planes() const { return static_cast<int64_t>(lines_down_.phases.size() * columns_.phases.size()); }
  // Calls body(row, phase across, first pixel, pixels) for every row of every plane, row null for zeros.
  template <class Body>
  void each_row(const float* source, const Block& block, const Body& body) const;
  void fill_row(const internal::Bf16Packing& packing, const float* row, int64_t phase, uint32_t* to) const;

  Axis down_, across_;
  PlaneAxis lines_down_, columns_;
  int64_t batch_, channels_;
  int64_t most_rows_ = 1, most_pictures_ = 1, blocks_ = 0;
  int64_t rows_ = 1;   // of a plane, from a picture to the next
  int64_t plane_ = 0;  // pixels of a plane
};

}  // namespace trireme::ops::padded

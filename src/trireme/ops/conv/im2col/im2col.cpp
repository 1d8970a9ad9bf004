// Convolution as products of matrices (im2col; Chellapilla et al. 2006): the inputs of an output, kernel's places times
// channels, are a row of a matrix, the filters its right factor. The matrix is never stored: its rows are read from the
// pictures by address (the indirect convolution of Dukhan 2019), of a block of outputs at a time.
//
//   forward   y[pixel][k] = Σ_l row[pixel][l] · w[l][k]
//   data      the same over the output's gradient, one product per phase of the stride
//   weights   dw[l][k] = Σ_pixel row[pixel][l] · dy[pixel][k]
//
// Cost: as many multiplications as the definition has; blocks of pixels and the packed weights as workspace.
#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/im2col/weights.h"
#include "trireme/ops/conv/im2col/window.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/conv/lanes.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace im2col {
namespace {

using conv_kernels::kStrip;
using conv_kernels::strips;

constexpr int64_t kPixels = 192;          // of a block
constexpr int64_t kColumns = 4 * kStrip;  // of the least part of a product worth a thread
constexpr int64_t kLongest = 1024;        // elements of a sum done at once, so that its weights stay in cache

// Forward, or one phase of the gradient of data.
class Gathering {
 public:
  Gathering(const ConvShape& shape, Axis down, Axis across, bool turned)
      : shape_(shape),
        turned_(turned),
        channels_(turned ? shape.out_channels : shape.in_channels),
        filters_(turned ? shape.in_channels : shape.out_channels),
        window_(std::move(down), std::move(across), shape.batch, channels_, shape.groups, kPixels) {}

  int64_t workspace(int64_t slots) const {
    Arena arena;
    take_weights(arena);
    for (int64_t slot = 0; slot < slots; ++slot) Slot(arena, window_);
    return arena.used();
  }

  void run(const ConvTensors& tensors, std::span<std::byte> workspace) const {
    Arena arena(workspace);
    float* const weights = take_weights(arena);
    for (int64_t group = 0; group < shape_.groups; ++group) {
      float* const to = weights + group * group_weights();
      if (turned_) {
        pack_channels(shape_, group, window_.down(), window_.across(), tensors.weight, to);
      } else {
        pack_filters(shape_, group, tensors.weight, to);
      }
    }
    int64_t slots = 1;
    while (slots < threads() && this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) ++slots;
    std::vector<Slot> own;
    for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, window_);
    // Few blocks are split by filters too.
    const int64_t wide = (filters_ / shape_.groups + kColumns - 1) / kColumns;
    const int64_t splits =
        std::clamp<int64_t>(4 * slots / std::max<int64_t>(window_.blocks(), 1), 1, slots > 1 ? wide : 1);
    const int64_t columns = (wide + splits - 1) / splits * kColumns;
    std::atomic<int64_t> next = 0;
    parallel(slots, [&](int64_t slot) {
      for (int64_t part = next++; part < window_.blocks() * splits; part = next++) {
        run_block(tensors, weights, own[static_cast<std::size_t>(slot)], window_.block(part / splits),
                  part % splits * columns, columns);
      }
    });
  }

 private:
  struct Slot {
    Slot(Arena& arena, const Window& window)
        : copy(arena.take<float>(window.copied())),
          pixels(arena.take<const float*>(window.pixels())),
          outs(arena.take<float*>(window.pixels())) {}
    float* copy;
    const float** pixels;
    float** outs;
  };

  int64_t group_weights() const { return strips(filters_ / shape_.groups) * window_.length() * kStrip; }
  float* take_weights(Arena& arena) const { return arena.take<float>(shape_.groups * group_weights()); }

  void run_block(const ConvTensors& tensors, const float* weights, const Slot& slot, const OutputBlock& block,
                 int64_t first_column, int64_t columns) const {
    window_.prepare(turned_ ? tensors.output : tensors.input, block, slot.copy, slot.pixels);
    point_outputs(turned_ ? tensors.input : tensors.output, block, slot.outs);
    const int64_t group_channels = channels_ / shape_.groups, group_filters = filters_ / shape_.groups;
    columns = std::min(columns, group_filters - first_column);
    if (columns <= 0) return;
    const Taps& taps = window_.taps();
    const auto tap_count = static_cast<int64_t>(taps.offsets.size());
    const int64_t at_once = std::max<int64_t>(1, taps.run > 0 ? kLongest / taps.run : tap_count);
    std::vector<int64_t> offsets = taps.offsets;
    for (int64_t group = 0; group < shape_.groups; ++group) {
      const float* const right = weights + group * group_weights() + first_column * window_.length();
      int64_t tap = 0;
      do {
        const int64_t some = std::min(at_once, tap_count - tap);
        conv_kernels::multiply(conv_kernels::RowsProduct{
            .rows = slot.pixels,
            .row_count = window_.pixels(block),
            .taps = offsets.data() + tap,
            .tap_count = some,
            .run = taps.run,
            .right = right + tap * taps.run * kStrip,
            .right_strip = window_.length() * kStrip,
            .columns = columns,
            .out = slot.outs,
            .out_offset = group * group_filters + first_column,
            .bias = tap > 0 || turned_ || tensors.bias == nullptr ? nullptr
                                                                  : tensors.bias + group * group_filters + first_column,
            .accumulate = tap > 0});
        tap += some;
      } while (tap < tap_count);
      for (int64_t& offset : offsets) offset += group_channels;
    }
  }

  void point_outputs(float* out, const OutputBlock& block, float** outs) const {
    const int64_t height = turned_ ? shape_.height : shape_.out_height();
    const int64_t width = turned_ ? shape_.width : shape_.out_width();
    im2col::point_outputs(window_, block, out, height, width, filters_, outs);
  }

  ConvShape shape_;
  bool turned_;
  int64_t channels_, filters_;
  Window window_;
};

// The gradient of the weights.
class Scattering {
 public:
  explicit Scattering(const ConvShape& shape)
      : shape_(shape),
        window_(forward_axis(shape, 0), forward_axis(shape, 1), shape.batch, shape.in_channels, shape.groups,
                shape.weight_size() * 4 <= kSmallSum ? kPixels : kManyPixels) {
    lanes_ = sum_lanes(sums(), window_.blocks());
  }

  int64_t workspace() const {
    Arena arena;
    for (int64_t lane = 0; lane < lanes_; ++lane) Lane(arena, *this);
    return arena.used();
  }

  void run(const ConvTensors& tensors, std::span<std::byte> workspace) const {
    Arena arena(workspace);
    std::vector<Lane> lanes;
    for (int64_t lane = 0; lane < lanes_; ++lane) lanes.emplace_back(arena, *this);
    if (window_.blocks() == 0) std::fill_n(lanes[0].sums, sums(), 0.0f);
    each_lane(lanes_, [&](int64_t lane) {
      for (int64_t block = lane; block < window_.blocks(); block += lanes_) {
        run_block(tensors, lanes[static_cast<std::size_t>(lane)], block, block >= lanes_);
      }
    });
    const int64_t part = group_sums();
    for (int64_t group = 0; group < shape_.groups; ++group) {
      for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
        conv_kernels::add(lanes[lane].sums + group * part, part, lanes[0].sums + group * part);
      }
      unpack_filters(shape_, group, lanes[0].sums + group * part, tensors.weight);
    }
  }

 private:
  static constexpr int64_t kSmallSum = 512 << 10;  // bytes
  static constexpr int64_t kManyPixels = 512;      // of a block where the sums do not stay in cache

  int64_t group_filters() const { return shape_.out_channels / shape_.groups; }
  int64_t group_sums() const { return strips(group_filters()) * window_.length() * kStrip; }
  int64_t sums() const { return shape_.groups * group_sums(); }
  int64_t gradients() const { return strips(group_filters()) * kStrip * window_.pixels(); }  // of a group

  struct Lane {
    Lane(Arena& arena, const Scattering& of)
        : sums(arena.take<float>(of.sums())),
          copy(arena.take<float>(of.window_.copied())),
          pixels(arena.take<const float*>(of.window_.pixels())),
          gradients(arena.take<float>(of.gradients())) {}
    float* sums;  // of each group as pack_filters has them
    float* copy;
    const float** pixels;
    float* gradients;  // strips of the block's pixels
  };

  void run_block(const ConvTensors& tensors, const Lane& lane, int64_t number, bool accumulate) const {
    const OutputBlock block = window_.block(number);
    window_.prepare(tensors.input, block, lane.copy, lane.pixels);
    const int64_t count = window_.pixels(block), across = window_.across().count;
    const float* const output =
        tensors.output + (block.picture * window_.down().count + block.row) * across * shape_.out_channels;
    const Taps& taps = window_.taps();
    const auto tap_count = static_cast<int64_t>(taps.offsets.size());
    const int64_t wide = (strips(group_filters()) + 3) / 4;
    for (int64_t group = 0; group < shape_.groups; ++group) {
      parallel(strips(group_filters()), [&](int64_t strip) {
        conv_kernels::copy_strip(output + group * group_filters() + strip * kStrip, shape_.out_channels, count,
                                 std::min(kStrip, group_filters() - strip * kStrip),
                                 lane.gradients + strip * count * kStrip);
      });
      parallel(tap_count * wide, [&](int64_t part) {
        const int64_t tap = part % tap_count, strip = part / tap_count * 4;
        conv_kernels::multiply(conv_kernels::ColumnsProduct{
            .left = lane.pixels,
            .left_offset = taps.offsets[static_cast<std::size_t>(tap)] + group * (shape_.in_channels / shape_.groups),
            .row_count = taps.run,
            .length = count,
            .right = lane.gradients + strip * count * kStrip,
            .right_strip = count * kStrip,
            .strip_count = std::min<int64_t>(4, strips(group_filters()) - strip),
            .out = lane.sums + group * group_sums() + (strip * window_.length() + tap * taps.run) * kStrip,
            .out_strip = window_.length() * kStrip,
            .accumulate = accumulate});
      });
    }
  }

  ConvShape shape_;
  Window window_;
  int64_t lanes_ = 1;
};

// Calls body(Gathering) for each part of the pass, one after the other.
template <class Body>
void each_product(const ConvShape& shape, Pass pass, const Body& body) {
  each_gathering(shape, pass, [&](Axis down, Axis across) {
    body(Gathering(shape, std::move(down), std::move(across), pass == Pass::data));
  });
}

class Im2colConv final : public ConvAlgorithm {
 public:
  std::string_view name() const override { return "im2col"; }
  std::string_view what() const override {
    return "a product of matrices, whose rows are read from the image in place";
  }
  bool takes(const ConvShape&, Pass) const override { return true; }

  OpCost cost(const ConvShape& shape, Pass pass) const override {
    int64_t workspace = 0;
    if (pass == Pass::weights) {
      workspace = Scattering(shape).workspace();
    } else {
      each_product(shape, pass, [&](const Gathering& it) { workspace = std::max(workspace, it.workspace(threads())); });
    }
    const double products = shape.flops() / 2;
    const auto elements = static_cast<double>(shape.input_size() + shape.output_size() + 3 * shape.weight_size());
    const int64_t columns = (pass == Pass::data ? shape.in_channels : shape.out_channels) / shape.groups;
    const double lanes = static_cast<double>(strips(columns) * kStrip) / static_cast<double>(columns);
    return {.multiplications = products,
            .additions = products,
            .slots = products * lanes,
            .bytes = 4.0 * elements,
            .workspace = workspace};
  }

  void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
           std::span<std::byte> workspace) const override {
    if (pass == Pass::weights) return Scattering(shape).run(tensors, workspace);
    each_product(shape, pass, [&](const Gathering& it) { it.run(tensors, workspace); });
  }
};

}  // namespace
}  // namespace im2col

const ConvAlgorithm& im2col_conv() {
  static const im2col::Im2colConv algorithm;
  return algorithm;
}

}  // namespace trireme::ops

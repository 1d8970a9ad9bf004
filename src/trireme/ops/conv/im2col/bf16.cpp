// Convolution as products of matrices in bf16 with sums in f32. Activations and weights come and go as f32. Where it is
// worth it, factors are read from padded images (../padded); else this is im2col (im2col.cpp) whose factors are rounded
// when they are packed:
//
//   forward   y[pixel][k] = Σ_l row[pixel][l] · w[l][k]
//   data      the same over the output's gradient, one product per phase of the stride
//   weights   dw[k][l] = Σ_pixel dy[pixel][k] · row[pixel][l]
//
// Symbols: tile, strip, line as in ops/matmul/bf16_kernels.h; a part is as many taps as a sum does at once.
// Cost: as many multiplications as the definition has; workspace for a block of pixels packed, and the packed weights.
#include <algorithm>
#include <array>
#include <atomic>

#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/conv/arena.h"
#include "trireme/ops/conv/im2col/bf16_parts.h"
#include "trireme/ops/conv/im2col/weights.h"
#include "trireme/ops/conv/im2col/window.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/conv/lanes.h"
#include "trireme/ops/conv/padded/gathering.h"
#include "trireme/ops/conv/padded/scattering.h"
#include "trireme/ops/matmul/bf16_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace im2col {
namespace {

using internal::Bf16Tiles;
using internal::kBf16Panel;

constexpr int64_t kBf16Pixels = 224;  // of a block: whole tiles of either kernel

// Forward, or one phase of the gradient of data.
class Bf16Gathering {
 public:
  Bf16Gathering(const Bf16Kernel& kernel, const ConvShape& shape, Axis down, Axis across, bool turned)
      : kernel_(kernel),
        shape_(shape),
        turned_(turned),
        channels_(turned ? shape.out_channels : shape.in_channels),
        filters_(turned ? shape.in_channels : shape.out_channels),
        window_(std::move(down), std::move(across), shape.batch, channels_, shape.groups, kBf16Pixels),
        parts_(window_.taps()) {}

  int64_t workspace(int64_t slots) const {
    Arena arena;
    take_weights(arena);
    for (int64_t slot = 0; slot < slots; ++slot) Slot(arena, *this);
    return arena.used();
  }

  void run(const ConvTensors& tensors, std::span<std::byte> workspace) const {
    Arena arena(workspace);
    const Weights weights = take_weights(arena);
    for (int64_t group = 0; group < shape_.groups; ++group) {
      if (turned_) {
        pack_channels(shape_, group, window_.down(), window_.across(), tensors.weight, weights.strips);
      } else {
        pack_filters(shape_, group, tensors.weight, weights.strips);
      }
      pair_weights(kernel_, parts_, group_strips(), weights.strips, weights.pairs + group * group_pairs());
    }
    int64_t slots = 1;
    while (slots < threads() && this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) ++slots;
    std::vector<Slot> own;
    for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, *this);
    std::atomic<int64_t> next = 0;
    parallel(slots, [&](int64_t slot) {
      for (int64_t block = next++; block < window_.blocks(); block = next++) {
        run_block(tensors, weights.pairs, own[static_cast<std::size_t>(slot)], window_.block(block));
      }
    });
  }

 private:
  struct Slot {
    Slot(Arena& arena, const Bf16Gathering& of)
        : copy(arena.take<float>(of.window_.copied())),
          pixels(arena.take<const float*>(of.window_.pixels())),
          outs(arena.take<float*>(of.window_.pixels())),
          tiles(arena.take<uint32_t>(of.window_.pixels() * of.parts_.most_lines() * kBf16Line)) {}
    float* copy;
    const float** pixels;
    float** outs;
    uint32_t* tiles;
  };
  struct Weights {
    float* strips;  // of one group
    uint32_t* pairs;
  };

  int64_t group_strips() const { return internal::bf16_strips(filters_ / shape_.groups); }
  int64_t group_pairs() const { return group_strips() * parts_.all_lines() * kBf16BlockPairs; }
  Weights take_weights(Arena& arena) const {
    auto* const strips = arena.take<float>(group_strips() * window_.length() * kBf16Strip);
    return {strips, arena.take<uint32_t>(shape_.groups * group_pairs())};
  }

  void run_block(const ConvTensors& tensors, const uint32_t* weights, const Slot& slot,
                 const OutputBlock& block) const {
    window_.prepare(turned_ ? tensors.output : tensors.input, block, slot.copy, slot.pixels);
    point_outputs(turned_ ? tensors.input : tensors.output, block, slot.outs);
    const int64_t group_channels = channels_ / shape_.groups, group_filters = filters_ / shape_.groups;
    const int64_t pixels = window_.pixels(block);
    const float* const bias = turned_ ? nullptr : tensors.bias;
    if (parts_.count() == 0) {
      for (int64_t i = 0; i < pixels; ++i) {
        for (int64_t j = 0; j < filters_; ++j) slot.outs[i][j] = bias != nullptr ? bias[j] : 0;
      }
      return;
    }
    const Bf16Tiles tiles(pixels, kernel_.rows);
    std::vector<int64_t> offsets = window_.taps().offsets;
    for (int64_t group = 0; group < shape_.groups; ++group) {
      const int64_t first_filter = group * group_filters;
      for (int64_t part = 0; part < parts_.count(); ++part) {
        const int64_t lines = parts_.lines(part);
        for (int64_t tile = 0; tile < tiles.count; ++tile) {
          const int64_t first = tiles.begin(tile);
          kernel_.packing->tile(
              {slot.pixels + first, offsets.data() + part * parts_.at_once, parts_.taps(part), parts_.run},
              tiles.size(tile), lines, slot.tiles + first * lines * kBf16Line);
        }
        const uint32_t* const right = weights + group * group_pairs() + parts_.first_line(part) * kBf16BlockPairs;
        const int64_t strip = parts_.all_lines() * kBf16BlockPairs;
        for (int64_t j = 0; j < group_filters; j += kBf16Panel) {
          kernel_.multiply({.a = slot.tiles,
                            .rows = pixels,
                            .lines = lines,
                            .b = right + j / kBf16Strip * strip,
                            .b_strip = strip,
                            .c = slot.outs,
                            .c_offset = first_filter + j,
                            .columns = std::min(kBf16Panel, group_filters - j),
                            .add = part > 0,
                            .bias = part > 0 || bias == nullptr ? nullptr : bias + first_filter + j});
        }
      }
      for (int64_t& offset : offsets) offset += group_channels;
    }
  }

  void point_outputs(float* out, const OutputBlock& block, float** outs) const {
    const int64_t height = turned_ ? shape_.height : shape_.out_height();
    const int64_t width = turned_ ? shape_.width : shape_.out_width();
    im2col::point_outputs(window_, block, out, height, width, filters_, outs);
  }

  const Bf16Kernel& kernel_;
  ConvShape shape_;
  bool turned_;
  int64_t channels_, filters_;
  Window window_;
  Parts parts_;
};

// The gradient of the weights: rows are filters, columns the runs of the window, each tap from a strip of its own on.
class Bf16Scattering {
 public:
  Bf16Scattering(const Bf16Kernel& kernel, const ConvShape& shape)
      : kernel_(kernel),
        shape_(shape),
        window_(forward_axis(shape, 0), forward_axis(shape, 1), shape.batch, shape.in_channels, shape.groups,
                kBf16Longest) {
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
    parallel(shape_.out_channels, [&](int64_t filter) {
      float* const sum = lanes[0].sums + filter * row();
      for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
        conv_kernels::add(lanes[lane].sums + filter * row(), row(), sum);
      }
      write_filter(sum, tensors.weight + filter * shape_.weight_size() / shape_.out_channels);
    });
  }

 private:
  int64_t group_filters() const { return shape_.out_channels / shape_.groups; }
  int64_t tap_strips() const { return internal::bf16_strips(window_.taps().run); }
  int64_t row() const { return static_cast<int64_t>(window_.taps().offsets.size()) * tap_strips() * kBf16Strip; }
  int64_t sums() const { return shape_.out_channels * row(); }
  static int64_t parts(int64_t pixels) { return (pixels + kBf16Longest - 1) / kBf16Longest; }

  struct Lane {
    Lane(Arena& arena, const Bf16Scattering& of)
        : sums(arena.take<float>(of.sums())),
          rows(arena.take<float*>(of.shape_.out_channels)),
          copy(arena.take<float>(of.window_.copied())),
          pixels(arena.take<const float*>(of.window_.pixels())),
          gradients(arena.take<const float*>(of.window_.pixels())),
          tiles(arena.take<uint32_t>(of.group_filters() * parts(of.window_.pixels()) * kBf16Longest / 2)) {}
    float* sums;  // [filters][taps][strips of a run][16]
    float** rows;
    float* copy;
    const float** pixels;
    const float** gradients;  // of the pixels
    uint32_t* tiles;          // of a group's filters: part after part of the pixels
  };

  void run_block(const ConvTensors& tensors, const Lane& lane, int64_t number, bool accumulate) const {
    const OutputBlock block = window_.block(number);
    window_.prepare(tensors.input, block, lane.copy, lane.pixels);
    const int64_t pixels = window_.pixels(block);
    const int64_t first_pixel = (block.picture * window_.down().count + block.row) * window_.across().count;
    for (int64_t i = 0; i < pixels; ++i) {
      lane.gradients[i] = tensors.output + (first_pixel + i) * shape_.out_channels;
    }
    for (int64_t i = 0; i < shape_.out_channels; ++i) lane.rows[i] = lane.sums + i * row();
    const Bf16Tiles tiles(group_filters(), kernel_.rows);
    const int64_t panels = (row() / kBf16Strip + 1) / 2;
    for (int64_t group = 0; group < shape_.groups; ++group) {
      parallel(tiles.count * parts(pixels), [&](int64_t it) {
        const int64_t tile = it % tiles.count, first = it / tiles.count * kBf16Longest;
        const int64_t some = std::min(kBf16Longest, pixels - first), lines = internal::bf16_lines(some);
        internal::bf16_pack_tile_of_columns(
            *kernel_.packing, lane.gradients + first, some, group * group_filters() + tiles.begin(tile),
            tiles.size(tile), lines, lane.tiles + group_filters() * first / 2 + tiles.begin(tile) * lines * kBf16Line);
      });
      parallel(panels, [&](int64_t panel) { run_panel(lane, group, panel, pixels, accumulate); });
    }
  }

  void run_panel(const Lane& lane, int64_t group, int64_t panel, int64_t pixels, bool accumulate) const {
    alignas(64) std::array<uint32_t, kBf16Longest / 2 * kBf16Panel> right;
    const Taps& taps = window_.taps();
    const int64_t strips = std::min<int64_t>(2, row() / kBf16Strip - 2 * panel);
    for (int64_t first = 0; first < pixels; first += kBf16Longest) {
      const int64_t some = std::min(kBf16Longest, pixels - first), lines = internal::bf16_lines(some);
      for (int64_t it = 0; it < strips; ++it) {
        const int64_t strip = 2 * panel + it, begin = strip % tap_strips() * kBf16Strip;
        const int64_t offset = taps.offsets[static_cast<std::size_t>(strip / tap_strips())] +
                               group * (shape_.in_channels / shape_.groups) + begin;
        kernel_.packing->strip(lane.pixels + first, some, offset, std::min(kBf16Strip, taps.run - begin), lines,
                               right.data() + it * lines * kBf16BlockPairs);
      }
      kernel_.multiply({.a = lane.tiles + group_filters() * first / 2,
                        .rows = group_filters(),
                        .lines = lines,
                        .b = right.data(),
                        .b_strip = lines * kBf16BlockPairs,
                        .c = lane.rows + group * group_filters(),
                        .c_offset = panel * kBf16Panel,
                        .columns = strips * kBf16Strip,
                        .add = accumulate || first > 0});
    }
  }

  // A filter's sums lie by place, then channel.
  void write_filter(const float* sums, float* weight) const {
    const int64_t channels = shape_.in_channels / shape_.groups, places = shape_.kernel[0] * shape_.kernel[1];
    const int64_t run = window_.taps().run, padded = tap_strips() * kBf16Strip;
    const int64_t per_run = run / channels;
    for (int64_t place = 0; place < places; ++place) {
      const float* const from = sums + place / per_run * padded + place % per_run * channels;
      for (int64_t c = 0; c < channels; ++c) weight[c * places + place] = from[c];
    }
  }

  const Bf16Kernel& kernel_;
  ConvShape shape_;
  Window window_;
  int64_t lanes_ = 1;
};

// Calls body(Gathering) for each part of the pass, one after the other.
template <class Gathering, class Body>
void each_product(const Bf16Kernel& kernel, const ConvShape& shape, Pass pass, const Body& body) {
  each_gathering(shape, pass, [&](Axis down, Axis across) {
    body(Gathering(kernel, shape, std::move(down), std::move(across), pass == Pass::data));
  });
}

class Bf16Conv final : public ConvAlgorithm {
 public:
  Bf16Conv(std::string_view name, std::string_view what, double products, bool (*has)(), const Bf16Kernel& (*kernel)())
      : name_(name), what_(what), products_(products), has_(has), kernel_(kernel) {}
  std::string_view name() const override { return name_; }
  std::string_view what() const override { return what_; }
  Accuracy accuracy() const override { return Accuracy::bf16; }
  bool takes(const ConvShape&, Pass) const override { return has_(); }

  OpCost cost(const ConvShape& shape, Pass pass) const override {
    const Bf16Kernel& kernel = kernel_();
    if (padded::takes(kernel, shape, pass)) return padded_cost(kernel, shape, pass);
    int64_t workspace = 0;
    if (pass == Pass::weights) {
      workspace = Bf16Scattering(kernel, shape).workspace();
    } else {
      each_product<Bf16Gathering>(kernel, shape, pass, [&](const Bf16Gathering& it) {
        workspace = std::max(workspace, it.workspace(threads()));
      });
    }
    const double products = shape.flops() / 2;
    const auto elements = static_cast<double>(shape.input_size() + shape.output_size() + 3 * shape.weight_size());
    const int64_t columns = (pass == Pass::data ? shape.in_channels : shape.out_channels) / shape.groups;
    const double lanes =
        static_cast<double>(internal::bf16_strips(columns) * kBf16Strip) / static_cast<double>(columns);
    return {.multiplications = products,
            .additions = products,
            .slots = products * lanes / products_,
            .bytes = 4.0 * elements,
            .workspace = workspace};
  }

  void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
           std::span<std::byte> workspace) const override {
    const auto run_it = [&](const auto& it) { it.run(tensors, workspace); };
    if (pass == Pass::weights) {
      if (padded::takes(kernel_(), shape, pass)) return run_it(padded::Scattering(kernel_(), shape));
      return run_it(Bf16Scattering(kernel_(), shape));
    }
    if (padded::takes(kernel_(), shape, pass)) return each_product<padded::Gathering>(kernel_(), shape, pass, run_it);
    each_product<Bf16Gathering>(kernel_(), shape, pass, run_it);
  }

 private:
  OpCost padded_cost(const Bf16Kernel& kernel, const ConvShape& shape, Pass pass) const {
    OpCost cost{.multiplications = shape.flops() / 2, .additions = shape.flops() / 2};
    if (pass == Pass::weights) {
      const padded::Scattering it(kernel, shape);
      cost.slots = it.products() / products_;
      cost.bytes = it.bytes();
      cost.workspace = it.workspace();
      return cost;
    }
    each_product<padded::Gathering>(kernel, shape, pass, [&](const padded::Gathering& it) {
      cost.slots += it.products() / products_;
      cost.bytes += it.bytes();
      cost.workspace = std::max(cost.workspace, it.workspace(threads()));
    });
    return cost;
  }

  std::string_view name_, what_;
  double products_;  // in the time of one of f32
  bool (*has_)();
  const Bf16Kernel& (*kernel_)();
};

}  // namespace
}  // namespace im2col

const ConvAlgorithm& bf16_conv() {
  static const im2col::Bf16Conv algorithm("bf16", "factors rounded to bf16, two products a lane", 2, internal::has_bf16,
                                          internal::bf16_vector_kernel);
  return algorithm;
}

const ConvAlgorithm& amx_conv() {
  static const im2col::Bf16Conv algorithm("amx", "factors rounded to bf16, in tile registers (AMX)", 12,
                                          internal::has_amx, internal::bf16_amx_kernel);
  return algorithm;
}

const ConvAlgorithm& emulated_amx_conv() {
  static const im2col::Bf16Conv algorithm(
      "amx, emulated", "factors rounded to bf16, in emulated tile registers", 0.001, [] { return true; },
      []() -> const internal::Bf16Kernel& { return internal::bf16_emulated_kernel(false); });
  return algorithm;
}

}  // namespace trireme::ops

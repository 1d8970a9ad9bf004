// Winograd's convolution F(m × m, 3 × 3), m 2 or 4 (Lavin and Gray, CVPR 2016): the output is cut into tiles of m × m,
// each from n × n inputs, n = m + 2, which overlap by 2.
//
//   forward   Y = Aᵀ [Σ_c (G w G ᵀ) ⊙ (Bᵀ d B)] A
//   data      the same over the output's gradient, with filters turned by half a turn
//   weights   dw = Gᵀ [Σ_tiles (Bᵀ d B) ⊙ (A dy Aᵀ)] G: the transpose of forward, as autograd has it
//
// The sums over channels (tiles) are n² products of matrices. Tiles go through all three stages in blocks whose
// transforms stay in the second-level cache. Cost: n² multiplications a tile, channel and filter for 9 m².
#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/conv/winograd/filtering.h"
#include "trireme/ops/conv/winograd/weight_gradient.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace {

constexpr double kTransform = 8;      // slots of an element of a transform, with its way through the cache
constexpr double kFilterTouches = 2;  // transformed filters or their sums are written and read

class WinogradConv final : public ConvAlgorithm {
 public:
  WinogradConv(int m, std::string_view name, std::string_view what) : m_(m), name_(name), what_(what) {}
  std::string_view name() const override { return name_; }
  std::string_view what() const override { return what_; }
  Accuracy accuracy() const override { return Accuracy::winograd; }

  bool takes(const ConvShape& shape, Pass) const override {
    constexpr std::array<int64_t, 2> one{1, 1}, three{3, 3};
    return shape.kernel == three && shape.stride == one && shape.dilation == one && shape.groups == 1;
  }

  OpCost cost(const ConvShape& shape, Pass pass) const override {
    const bool weights = pass == Pass::weights;
    const winograd::Tiles tiles =
        weights ? winograd::WeightGradient(shape, m_).tiles() : winograd::Filtering(shape, pass, m_).tiles();
    const int64_t n = m_ + 2;
    const auto places = static_cast<double>(n * n), all = static_cast<double>(tiles.count());
    const double products = all * places * static_cast<double>(shape.in_channels * shape.out_channels);
    // Rows of both transforms of a tile's channels, a sum of n each.
    const double sums = all * 2 * places * static_cast<double>(shape.in_channels + shape.out_channels);
    const int64_t from = pass == Pass::data ? shape.out_channels : shape.in_channels;
    const int64_t to = pass == Pass::data ? shape.in_channels : shape.out_channels;
    const auto wide = [](int64_t channels) { return static_cast<double>(winograd::wide(channels)); };
    const auto elements = static_cast<double>(shape.input_size() + shape.output_size() + shape.weight_size());
    const bool few = winograd::few_tiles(from, to, tiles.count());
    const double filters = few ? 0 : places / 9 * static_cast<double>(shape.weight_size());
    return {.multiplications = products,
            .additions = products + static_cast<double>(n) / 2 * sums,
            .slots = all * places * static_cast<double>(from) * wide(to) +
                     kTransform * all * places * (wide(from) + wide(to)),
            .bytes = 4 * (elements + kFilterTouches * filters),
            .workspace = weights ? winograd::WeightGradient(shape, m_).workspace(threads())
                                 : winograd::Filtering(shape, pass, m_).workspace(threads())};
  }

  void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
           std::span<std::byte> workspace) const override {
    if (pass == Pass::weights) return winograd::WeightGradient(shape, m_).run(tensors, workspace);
    if (shape.batch > 0) winograd::Filtering(shape, pass, m_).run(tensors, workspace);
  }

 private:
  int m_;
  std::string_view name_, what_;
};

}  // namespace

const ConvAlgorithm& winograd2_conv() {
  static const WinogradConv algorithm(2, "winograd2", "Winograd F(2x2, 3x3): 16 multiplications for 36");
  return algorithm;
}

const ConvAlgorithm& winograd4_conv() {
  static const WinogradConv algorithm(4, "winograd4", "Winograd F(4x4, 3x3): 36 multiplications for 144");
  return algorithm;
}

}  // namespace trireme::ops

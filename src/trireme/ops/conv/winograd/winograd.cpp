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
#include "trireme/ops/conv/tiled/tiled_conv.h"
#include "trireme/ops/conv/winograd/matrices.h"
#include "trireme/ops/conv/winograd/winograd_kernels.h"

namespace trireme::ops {
namespace {

constexpr std::array<int64_t, 2> kThree{3, 3};

template <std::size_t columns, std::size_t rows>
std::vector<std::vector<std::string>> texts_of(const std::array<std::array<Rational, columns>, rows>& matrix) {
  std::vector<std::vector<std::string>> texts;
  for (const auto& row : matrix) {
    auto& line = texts.emplace_back();
    for (const Rational x : row) {
      line.push_back(x.below == 1 ? std::to_string(x.above) : std::to_string(x.above) + "/" + std::to_string(x.below));
    }
  }
  return texts;
}

template <int m>
std::vector<tiled::Transform::Named> names_of(const Winograd<m, 3>& it) {
  return {{"Bᵀ", texts_of(it.b)}, {"G", texts_of(it.g)}, {"A", texts_of(it.a)}};
}

class WinogradTransform final : public tiled::Transform {
 public:
  explicit WinogradTransform(int m) : Transform(m + 2, kThree, (m + 2) * (m + 2), 1), m_(m) {}
  void data(const tiled::TileRead& read) const override { conv_kernels::winograd_data(m_, read); }
  void gradients(const tiled::TileRead& read) const override { conv_kernels::winograd_gradients(m_, read); }
  void products(const tiled::TileWrite& write) const override { conv_kernels::winograd_products(m_, write); }
  void filters(const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to) const override {
    conv_kernels::winograd_filters(m_, from, rotated, count, to);
  }
  void fold(const tiled::FilterPlaces& from, int64_t count, float* to) const override {
    conv_kernels::winograd_fold(m_, from, count, to);
  }
  std::vector<Named> matrices() const override {
    return m_ == 2 ? names_of(derive_winograd<2, 3>()) : names_of(derive_winograd<4, 3>());
  }

 private:
  int m_;
};

class WinogradConv final : public tiled::TiledConv {
 public:
  WinogradConv(int m, std::string_view name, std::string_view what) : m_(m), name_(name), what_(what) {}
  std::string_view name() const override { return name_; }
  std::string_view what() const override { return what_; }
  std::unique_ptr<tiled::Transform> transform(const ConvShape&, Pass) const override {
    return std::make_unique<WinogradTransform>(m_);
  }

 private:
  bool takes_kernel(std::array<int64_t, 2> kernel) const override { return kernel == kThree; }
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

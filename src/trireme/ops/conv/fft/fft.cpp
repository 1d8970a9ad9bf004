// Convolution by Fourier transforms of tiles (overlap-save; Mathieu et al. 2014, Zlateski et al. 2019): tiles of n × n
// inputs, n 8, 16 or 32, give n − kernel + 1 outputs on each side; their spectra times the conjugate ones of the
// filters, summed over channels, are the outputs' spectra.
//
// Cost: n (n/2 + 1) complex products a tile, channel and filter, four multiplications each; worth it for large kernels.
#include <cmath>

#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/conv/fft/fft_kernels.h"
#include "trireme/ops/conv/tiled/tiled_conv.h"

namespace trireme::ops {
namespace {

class FftTransform final : public tiled::Transform {
 public:
  FftTransform(int size, std::array<int64_t, 2> of) : Transform(size, of, size * (size / 2 + 1), 2) {}
  void data(const tiled::TileRead& read) const override { conv_kernels::fft_tiles(n, {n, n}, read); }
  void gradients(const tiled::TileRead& read) const override { conv_kernels::fft_tiles(n, outputs, read); }
  void products(const tiled::TileWrite& write) const override { conv_kernels::fft_products(n, outputs, write); }
  void filters(const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to) const override {
    conv_kernels::fft_filters(n, kernel, from, rotated, count, to);
  }
  void fold(const tiled::FilterPlaces& from, int64_t count, float* to) const override {
    conv_kernels::fft_fold(n, kernel, from, count, to);
  }
};

class FftConv final : public tiled::TiledConv {
 public:
  std::string_view name() const override { return "fft"; }
  std::string_view what() const override { return "Fourier transforms of tiles: for large kernels"; }

  // The size of tiles with the fewest products, filters' transforms counted as some tiles'.
  std::unique_ptr<tiled::Transform> transform(const ConvShape& shape, Pass pass) const override {
    constexpr double kFilters = 40;
    const bool data = pass == Pass::data;
    const auto height = static_cast<double>(data ? shape.height : shape.out_height());
    const auto width = static_cast<double>(data ? shape.width : shape.out_width());
    int best = 0;
    double least = INFINITY;
    for (const int n : {8, 16, 32}) {
      if (n < shape.kernel[0] || n < shape.kernel[1]) continue;
      const auto down = static_cast<double>(n - shape.kernel[0] + 1),
                 across = static_cast<double>(n - shape.kernel[1] + 1);
      const double tiles = static_cast<double>(shape.batch) * std::ceil(height / down) * std::ceil(width / across);
      const double work = n * (n / 2 + 1) * (tiles + kFilters);
      if (work < least) {
        least = work;
        best = n;
      }
    }
    return std::make_unique<FftTransform>(best, shape.kernel);
  }

 private:
  bool takes_kernel(std::array<int64_t, 2> kernel) const override { return kernel[0] <= 17 && kernel[1] <= 17; }
};

}  // namespace

const ConvAlgorithm& fft_conv() {
  static const FftConv algorithm;
  return algorithm;
}

}  // namespace trireme::ops

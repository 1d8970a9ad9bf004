#include "trireme/ops/conv/fft/fft_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/conv/fft/fft_kernels.cpp"
#include "trireme/ops/conv/kernels/targets.h"
// After targets.h.
#include <hwy/highway.h>

#include "trireme/ops/conv/fft/fft-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {

template <int n>
void read_spectra(Sides size, const tiled::TileRead& it) {
  Spectrum<n> spectrum;
  for (int64_t t = 0; t < it.tiles; ++t) {
    const float* const* places = it.places + t * size[0] * size[1];
    for (int64_t c = 0; c < strips(it.channels) * kStrip; c += kWide) {
      const auto get = [&](int i, int j) HWY_ATTR {
        if (i >= size[0] || j >= size[1]) return hn::Zero(Channels());
        return load_some(places[i * size[1] + j] + c, it.channels - c);
      };
      tile_to_spectrum<n>(get, spectrum);
      float* to = it.out + t * it.tile + c / kStrip * it.strip + c % kStrip;
      for (int k = 0; k <= n / 2; ++k) {
        for (int u = 0; u < n; ++u) {
          hn::Store(spectrum.re[k][u], Channels(), to + (k * n + u) * it.part);
          hn::Store(spectrum.im[k][u], Channels(), to + (k * n + u) * it.part + it.plane);
        }
      }
    }
  }
}

template <int n>
void write_spectra(Sides outputs, const tiled::TileWrite& it) {
  Spectrum<n> spectrum;
  for (int64_t t = 0; t < it.tiles; ++t) {
    float* const* places = it.places + t * outputs[0] * outputs[1];
    for (int64_t c = 0; c < it.channels; c += kWide) {
      const float* from = it.in + t * it.tile + c;
      for (int k = 0; k <= n / 2; ++k) {
        for (int u = 0; u < n; ++u) {
          spectrum.re[k][u] = hn::Load(Channels(), from + (k * n + u) * it.part);
          spectrum.im[k][u] = hn::Load(Channels(), from + (k * n + u) * it.part + it.plane);
        }
      }
      const int64_t count = it.channels - c;
      const Vector bias = it.bias != nullptr ? load_some(it.bias + c, count) : hn::Zero(Channels());
      spectrum_to_tile<n>(spectrum, outputs[0], outputs[1], [&](int i, int j, Vector x) HWY_ATTR {
        float* to = places[i * outputs[1] + j];
        if (to != nullptr) store_some(hn::Add(x, bias), to + it.offset + c, count);
      });
    }
  }
}

template <int n>
void expand_to_spectra(Sides kernel, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& it) {
  Spectrum<n> spectrum;
  const int64_t places = kernel[0] * kernel[1];
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < kStrip; c += kWide) {
      const float* filter = from + i * places * kStrip + c;
      const auto get = [&](int r, int s) HWY_ATTR {
        if (r >= kernel[0] || s >= kernel[1]) return hn::Zero(Channels());
        const int64_t place = r * kernel[1] + s;
        return hn::Load(Channels(), filter + (rotated ? places - 1 - place : place) * kStrip);
      };
      tile_to_spectrum<n>(get, spectrum);
      for (int k = 0; k <= n / 2; ++k) {
        for (int u = 0; u < n; ++u) {
          float* to = it.first + (k * n + u) * it.part + i * kStrip + c;
          const Vector re = spectrum.re[k][u], im = spectrum.im[k][u];
          hn::Store(re, Channels(), to);
          hn::Store(hn::Neg(im), Channels(), to + it.column_plane);
          hn::Store(im, Channels(), to + it.row_plane);
          hn::Store(re, Channels(), to + it.row_plane + it.column_plane);
        }
      }
    }
  }
}

template <int n>
void fold_spectra(Sides kernel, const tiled::FilterPlaces& it, int64_t count, float* out) {
  Spectrum<n> spectrum;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < kStrip; c += kWide) {
      for (int k = 0; k <= n / 2; ++k) {
        for (int u = 0; u < n; ++u) {
          const float* from = it.first + (k * n + u) * it.part + i * kStrip + c;
          const auto at = [&](int64_t offset) HWY_ATTR { return hn::Load(Channels(), from + offset); };
          spectrum.re[k][u] = hn::Add(at(0), at(it.row_plane + it.column_plane));
          spectrum.im[k][u] = hn::Sub(at(it.row_plane), at(it.column_plane));
        }
      }
      float* filter = out + i * kernel[0] * kernel[1] * kStrip + c;
      spectrum_to_tile<n>(spectrum, kernel[0], kernel[1], [&](int r, int s, Vector x) HWY_ATTR {
        hn::Store(x, Channels(), filter + (r * kernel[1] + s) * kStrip);
      });
    }
  }
}

void tiles_for(int n, Sides size, const tiled::TileRead& it) {
  n == 8 ? read_spectra<8>(size, it) : n == 16 ? read_spectra<16>(size, it) : read_spectra<32>(size, it);
}
void spectra_for(int n, Sides outputs, const tiled::TileWrite& it) {
  n == 8 ? write_spectra<8>(outputs, it) : n == 16 ? write_spectra<16>(outputs, it) : write_spectra<32>(outputs, it);
}
void kernels_for(int n, Sides kernel, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to) {
  const auto run = n == 8 ? expand_to_spectra<8> : n == 16 ? expand_to_spectra<16> : expand_to_spectra<32>;
  run(kernel, from, rotated, count, to);
}
void sums_for(int n, Sides kernel, const tiled::FilterPlaces& from, int64_t count, float* to) {
  const auto run = n == 8 ? fold_spectra<8> : n == 16 ? fold_spectra<16> : fold_spectra<32>;
  run(kernel, from, count, to);
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::conv_kernels {

HWY_EXPORT(tiles_for);
HWY_EXPORT(spectra_for);
HWY_EXPORT(kernels_for);
HWY_EXPORT(sums_for);

void fft_tiles(int n, Sides size, const tiled::TileRead& read) { HWY_DYNAMIC_DISPATCH(tiles_for)(n, size, read); }
void fft_products(int n, Sides outputs, const tiled::TileWrite& write) {
  HWY_DYNAMIC_DISPATCH(spectra_for)(n, outputs, write);
}
void fft_filters(int n, Sides kernel, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to) {
  HWY_DYNAMIC_DISPATCH(kernels_for)(n, kernel, from, rotated, count, to);
}
void fft_fold(int n, Sides kernel, const tiled::FilterPlaces& from, int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(sums_for)(n, kernel, from, count, to);
}

}  // namespace trireme::ops::conv_kernels
#endif

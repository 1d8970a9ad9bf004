// Fourier transforms of 8, 16 or 32 elements, each element a vector over channels: radix 2, decimation in time (Cooley
// and Tukey 1965), written out by the compiler.
#if defined(TRIREME_OPS_CONV_FFT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_CONV_FFT_INL_H
#undef TRIREME_OPS_CONV_FFT_INL_H
#else
#define TRIREME_OPS_CONV_FFT_INL_H
#endif

#include <hwy/highway.h>

#include "trireme/ops/conv/fft/twiddle.h"
#include "trireme/ops/conv/tiled/channels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {

// One of the n/2 butterflies that join the transforms of even and odd elements: e + wᵏ o and e − wᵏ o, w = exp(−2πi/n).
template <int n, int k>
HWY_INLINE void butterfly(Vector* re, Vector* im) {
  constexpr int half = n / 2;
  Vector x = re[k + half], y = im[k + half];
  if constexpr (k == n / 4 && n >= 4) {  // w is −i
    const Vector turned = y;
    y = hn::Neg(x);
    x = turned;
  } else if constexpr (k > 0) {
    const Vector cosine = hn::Set(Channels(), static_cast<float>(twiddle_cosine(k, n)));
    const Vector sine = hn::Set(Channels(), static_cast<float>(twiddle_sine(k, n)));
    const Vector real = hn::MulAdd(cosine, x, hn::Mul(sine, y));
    y = hn::NegMulAdd(sine, x, hn::Mul(cosine, y));
    x = real;
  }
  re[k + half] = hn::Sub(re[k], x);
  im[k + half] = hn::Sub(im[k], y);
  re[k] = hn::Add(re[k], x);
  im[k] = hn::Add(im[k], y);
  if constexpr (k + 1 < half) butterfly<n, k + 1>(re, im);
}

// out_k = Σ_j in_j · exp(−2πi j k / n); in and out do not overlap. With real and imaginary parts exchanged on both
// sides it is the inverse, times n.
template <int n, int stride = 1>
HWY_INLINE void fourier(const Vector* in_re, const Vector* in_im, Vector* re, Vector* im) {
  if constexpr (n == 1) {
    re[0] = in_re[0];
    im[0] = in_im[0];
  } else {
    fourier<n / 2, 2 * stride>(in_re, in_im, re, im);
    fourier<n / 2, 2 * stride>(in_re + stride, in_im + stride, re + n / 2, im + n / 2);
    butterfly<n, 0>(re, im);
  }
}

// The half of a tile's spectrum that tells the other: columns k ≤ n/2 of n rows.
template <int n>
struct Spectrum {
  static constexpr int kColumns = n / 2 + 1;
  Vector re[kColumns][n];
  Vector im[kColumns][n];
};

// Twice the transform of n × n real elements get(i, j): two rows at a time as real and imaginary part of one.
template <int n, class Get>
HWY_INLINE void tile_to_spectrum(const Get& get, Spectrum<n>& to) {
  Spectrum<n> half;
  for (int i = 0; i < n; i += 2) {
    Vector a[n], b[n], re[n], im[n];
    for (int j = 0; j < n; ++j) {
      a[j] = get(i, j);
      b[j] = get(i + 1, j);
    }
    fourier<n>(a, b, re, im);
    for (int k = 0; k <= n / 2; ++k) {
      const int other = (n - k) % n;
      half.re[k][i] = hn::Add(re[k], re[other]);
      half.im[k][i] = hn::Sub(im[k], im[other]);
      half.re[k][i + 1] = hn::Add(im[k], im[other]);
      half.im[k][i + 1] = hn::Sub(re[other], re[k]);
    }
  }
  for (int k = 0; k <= n / 2; ++k) fourier<n>(half.re[k], half.im[k], to.re[k], to.im[k]);
}

// Calls put(i, j, x) for the first rows × columns of the inverse transform, divided by 4: what a product of two spectra
// that are twice too large gives.
template <int n, class Put>
HWY_INLINE void spectrum_to_tile(const Spectrum<n>& from, int64_t rows, int64_t columns, const Put& put) {
  Spectrum<n> half;
  for (int k = 0; k <= n / 2; ++k) fourier<n>(from.im[k], from.re[k], half.im[k], half.re[k]);
  const Vector scale = hn::Set(Channels(), 1.0f / (4 * n * n));
  for (int i = 0; i < rows; i += 2) {
    Vector a[n], b[n], re[n], im[n];
    for (int k = 0; k <= n / 2; ++k) {
      const Vector &x = half.re[k][i], &y = half.im[k][i], &u = half.re[k][i + 1], &v = half.im[k][i + 1];
      a[k] = hn::Sub(x, v);
      b[k] = hn::Add(y, u);
      if (k > 0 && k < n / 2) {
        a[n - k] = hn::Add(x, v);
        b[n - k] = hn::Sub(u, y);
      }
    }
    fourier<n>(b, a, im, re);
    for (int j = 0; j < columns; ++j) {
      put(i, j, hn::Mul(scale, re[j]));
      if (i + 1 < rows) put(i + 1, j, hn::Mul(scale, im[j]));
    }
  }
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

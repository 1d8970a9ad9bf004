// For every SIMD target. ReLU keeps what is no number, as LibTorch's does.
#include "trireme/ops/passes/row_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/passes/row_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::rows::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, kLane>;
using V = hn::Vec<Floats>;
constexpr int64_t kFloats = static_cast<int64_t>(hn::MaxLanes(Floats()));
constexpr int64_t kBlock = kLane / kFloats * 2;  // vectors of a block of columns: sums stay in registers

HWY_INLINE V load(const float* p) { return hn::LoadU(Floats(), p); }

template <bool kRelu>
HWY_INLINE V gradient_at(const float* gradient, const float* output, int64_t i) {
  const V g = load(gradient + i);
  if constexpr (!kRelu) return g;
  return hn::IfThenZeroElse(hn::Le(load(output + i), hn::Zero(Floats())), g);
}

// Two sums a column; term(offset of a vector, its column, sums to add to). Columns in blocks of `n` vectors.
template <int64_t n, class Term>
HWY_INLINE void add_columns(int64_t column, int64_t count, int64_t width, float* first, float* second,
                            const Term& term) {
  V a[n], b[n];
  for (int64_t v = 0; v < n; ++v) {
    a[v] = load(first + column + v * kFloats);
    b[v] = load(second + column + v * kFloats);
  }
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t v = 0; v < n; ++v) {
      const int64_t place = column + v * kFloats;
      term(row * width + place, place, a[v], b[v]);
    }
  }
  for (int64_t v = 0; v < n; ++v) {
    hn::StoreU(a[v], Floats(), first + column + v * kFloats);
    hn::StoreU(b[v], Floats(), second + column + v * kFloats);
  }
}

template <class Term>
HWY_INLINE void add_all_columns(int64_t count, int64_t width, float* first, float* second, const Term& term) {
  int64_t column = 0;
  for (; column + 2 * kBlock * kFloats <= width; column += 2 * kBlock * kFloats) {
    add_columns<2 * kBlock>(column, count, width, first, second, term);
  }
  for (; column < width; column += kLane) add_columns<kLane / kFloats>(column, count, width, first, second, term);
}

void add_moments_for(const float* x, const float* base, int64_t count, int64_t width, float* sum, float* square) {
  add_all_columns(count, width, sum, square, [&](int64_t i, int64_t column, V& a, V& b) HWY_ATTR {
    const V apart = hn::Sub(load(x + i), load(base + column));
    a = hn::Add(a, apart);
    b = hn::MulAdd(apart, apart, b);
  });
}

template <bool kRelu>
HWY_INLINE void add_gradients_of(const float* gradient, const float* output, const float* x, const float* mean,
                                 int64_t count, int64_t width, float* sum, float* product) {
  add_all_columns(count, width, sum, product, [&](int64_t i, int64_t column, V& a, V& b) HWY_ATTR {
    const V g = gradient_at<kRelu>(gradient, output, i);
    a = hn::Add(a, g);
    b = hn::MulAdd(g, hn::Sub(load(x + i), load(mean + column)), b);
  });
}

void add_gradients_for(const float* gradient, const float* output, const float* x, const float* mean, int64_t count,
                       int64_t width, float* sum, float* product) {
  output ? add_gradients_of<true>(gradient, output, x, mean, count, width, sum, product)
         : add_gradients_of<false>(gradient, output, x, mean, count, width, sum, product);
}

template <bool kAdd, bool kRelu>
HWY_INLINE void normalize_all(const float* x, const float* scale, const float* shift, const float* add, int64_t count,
                              int64_t width, float* y) {
  for (int64_t row = 0; row < count; ++row, x += width, y += width) {
    for (int64_t c = 0; c < width; c += kFloats) {
      V value = hn::MulAdd(load(x + c), load(scale + c), load(shift + c));
      if constexpr (kAdd) value = hn::Add(value, load(add + c));
      if constexpr (kRelu) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(Floats())), value);
      hn::StoreU(value, Floats(), y + c);
    }
    if constexpr (kAdd) add += width;
  }
}

void normalize_for(const float* x, const float* scale, const float* shift, const float* add, bool relu, int64_t count,
                   int64_t width, float* y) {
  if (add) {
    relu ? normalize_all<true, true>(x, scale, shift, add, count, width, y)
         : normalize_all<true, false>(x, scale, shift, add, count, width, y);
  } else {
    relu ? normalize_all<false, true>(x, scale, shift, add, count, width, y)
         : normalize_all<false, false>(x, scale, shift, add, count, width, y);
  }
}

template <bool kAdd, bool kRelu>
HWY_INLINE void backward_all(const float* gradient, const float* output, const float* x, const Slopes& by,
                             int64_t count, int64_t width, float* dx, float* add) {
  for (int64_t row = 0; row < count; ++row) {
    const int64_t begin = row * width;
    for (int64_t c = 0; c < width; c += kFloats) {
      const V g = gradient_at<kRelu>(gradient, output, begin + c);
      const V apart = hn::Sub(load(x + begin + c), load(by.mean + c));
      const V line = hn::MulAdd(apart, load(by.slope + c), load(by.offset + c));
      hn::StoreU(hn::MulAdd(g, load(by.scale + c), line), Floats(), dx + begin + c);
      if constexpr (kAdd) hn::StoreU(g, Floats(), add + begin + c);
    }
  }
}

void backward_for(const float* gradient, const float* output, const float* x, const Slopes& by, int64_t count,
                  int64_t width, float* dx, float* add) {
  if (add) {
    output ? backward_all<true, true>(gradient, output, x, by, count, width, dx, add)
           : backward_all<true, false>(gradient, output, x, by, count, width, dx, add);
  } else {
    output ? backward_all<false, true>(gradient, output, x, by, count, width, dx, add)
           : backward_all<false, false>(gradient, output, x, by, count, width, dx, add);
  }
}

template <int64_t n, bool kRelu>
HWY_INLINE void mask_columns(int64_t column, const float* gradient, const float* output, int64_t count, int64_t width,
                             float* masked, float* sum) {
  V a[n];
  for (int64_t v = 0; v < n; ++v) a[v] = load(sum + column + v * kFloats);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t v = 0; v < n; ++v) {
      const int64_t i = row * width + column + v * kFloats;
      const V g = gradient_at<kRelu>(gradient, output, i);
      a[v] = hn::Add(a[v], g);
      if constexpr (kRelu) hn::StoreU(g, Floats(), masked + i);
    }
  }
  for (int64_t v = 0; v < n; ++v) hn::StoreU(a[v], Floats(), sum + column + v * kFloats);
}

template <bool kRelu>
HWY_INLINE void mask_all(const float* gradient, const float* output, int64_t count, int64_t width, float* masked,
                         float* sum) {
  int64_t column = 0;
  for (; column + 2 * kBlock * kFloats <= width; column += 2 * kBlock * kFloats) {
    mask_columns<2 * kBlock, kRelu>(column, gradient, output, count, width, masked, sum);
  }
  for (; column < width; column += kLane) {
    mask_columns<kLane / kFloats, kRelu>(column, gradient, output, count, width, masked, sum);
  }
}

void mask_and_add_for(const float* gradient, const float* output, int64_t count, int64_t width, float* masked,
                      float* sum) {
  output ? mask_all<true>(gradient, output, count, width, masked, sum)
         : mask_all<false>(gradient, output, count, width, masked, sum);
}

}  // namespace trireme::ops::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::rows {

HWY_EXPORT(add_moments_for);
HWY_EXPORT(add_gradients_for);
HWY_EXPORT(normalize_for);
HWY_EXPORT(backward_for);
HWY_EXPORT(mask_and_add_for);

void add_moments(const float* x, const float* base, int64_t count, int64_t width, float* sum, float* square) {
  HWY_DYNAMIC_DISPATCH(add_moments_for)(x, base, count, width, sum, square);
}
void add_gradients(const float* gradient, const float* output, const float* x, const float* mean, int64_t count,
                   int64_t width, float* sum, float* product) {
  HWY_DYNAMIC_DISPATCH(add_gradients_for)(gradient, output, x, mean, count, width, sum, product);
}
void normalize(const float* x, const float* scale, const float* shift, const float* add, bool relu, int64_t count,
               int64_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(normalize_for)(x, scale, shift, add, relu, count, width, y);
}
void backward(const float* gradient, const float* output, const float* x, const Slopes& by, int64_t count,
              int64_t width, float* dx, float* add) {
  HWY_DYNAMIC_DISPATCH(backward_for)(gradient, output, x, by, count, width, dx, add);
}

void mask_and_add(const float* gradient, const float* output, int64_t count, int64_t width, float* masked, float* sum) {
  HWY_DYNAMIC_DISPATCH(mask_and_add_for)(gradient, output, count, width, masked, sum);
}

}  // namespace trireme::ops::rows
#endif

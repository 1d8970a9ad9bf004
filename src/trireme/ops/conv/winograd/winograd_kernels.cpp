#include "trireme/ops/conv/winograd/winograd_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/conv/winograd/winograd_kernels.cpp"
#include "trireme/ops/conv/kernels/targets.h"
// After targets.h.
#include <hwy/highway.h>

#include "trireme/ops/conv/winograd/transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {

template <class M>
HWY_INLINE void read_tiles(const tiled::TileRead& it) {
  constexpr int in = static_cast<int>(M::of[0].size()), out = static_cast<int>(M::of.size());
  for (int64_t t = 0; t < it.tiles; ++t) {
    const float* const* places = it.places + t * in * in;
    for (int64_t c = 0; c < strips(it.channels) * kStrip; c += kWide) {
      float* to = it.out + t * it.tile + c / kStrip * it.strip + c % kStrip;
      const auto put = [&](int i, int j, Vector x) HWY_ATTR { hn::Store(x, Channels(), to + (i * out + j) * it.part); };
      if (c + kWide <= it.channels) {
        transform_tile<M, false>([&](int i, int j) HWY_ATTR { return hn::LoadU(Channels(), places[i * in + j] + c); },
                                 put);
      } else {
        transform_tile<M, false>(
            [&](int i, int j) HWY_ATTR { return load_some(places[i * in + j] + c, it.channels - c); }, put);
      }
    }
  }
}

template <int m>
HWY_INLINE void write_tiles(const tiled::TileWrite& it) {
  constexpr int n = m + 2;
  for (int64_t t = 0; t < it.tiles; ++t) {
    float* const* places = it.places + t * m * m;
    for (int64_t c = 0; c < it.channels; c += kWide) {
      const float* from = it.in + t * it.tile + c;
      const int64_t count = it.channels - c;
      const Vector bias = it.bias != nullptr ? load_some(it.bias + c, count) : hn::Zero(Channels());
      transform_tile<MatrixA<m>, true>([&](int i, int j)
                                           HWY_ATTR { return hn::Load(Channels(), from + (i * n + j) * it.part); },
                                       [&](int i, int j, Vector x) HWY_ATTR {
                                         float* to = places[i * m + j];
                                         if (to != nullptr) store_some(hn::Add(x, bias), to + it.offset + c, count);
                                       });
    }
  }
}

template <int m>
HWY_INLINE void expand_filters(const float* from, bool rotated, int64_t count, float* out, int64_t part) {
  constexpr int n = m + 2;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < kStrip; c += kWide) {
      const float* filter = from + i * 9 * kStrip + c;
      float* to = out + i * kStrip + c;
      transform_tile<MatrixG<m>, false>(
          [&](int r, int s)
              HWY_ATTR { return hn::Load(Channels(), filter + (rotated ? 8 - r * 3 - s : r * 3 + s) * kStrip); },
          [&](int r, int s, Vector x) HWY_ATTR { hn::Store(x, Channels(), to + (r * n + s) * part); });
    }
  }
}

template <int m>
HWY_INLINE void contract_filters(const float* in, int64_t part, int64_t count, float* to) {
  constexpr int n = m + 2;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < kStrip; c += kWide) {
      const float* from = in + i * kStrip + c;
      float* filter = to + i * 9 * kStrip + c;
      transform_tile<MatrixG<m>, true>(
          [&](int r, int s) HWY_ATTR { return hn::Load(Channels(), from + (r * n + s) * part); },
          [&](int r, int s, Vector x) HWY_ATTR { hn::Store(x, Channels(), filter + (r * 3 + s) * kStrip); });
    }
  }
}

void data_for(int m, const tiled::TileRead& it) { m == 2 ? read_tiles<MatrixB<2>>(it) : read_tiles<MatrixB<4>>(it); }
void gradients_for(int m, const tiled::TileRead& it) {
  m == 2 ? read_tiles<MatrixA<2>>(it) : read_tiles<MatrixA<4>>(it);
}
void products_for(int m, const tiled::TileWrite& it) { m == 2 ? write_tiles<2>(it) : write_tiles<4>(it); }
void filters_for(int m, const float* from, bool rotated, int64_t count, float* out, int64_t part) {
  m == 2 ? expand_filters<2>(from, rotated, count, out, part) : expand_filters<4>(from, rotated, count, out, part);
}
void fold_for(int m, const float* in, int64_t part, int64_t count, float* to) {
  m == 2 ? contract_filters<2>(in, part, count, to) : contract_filters<4>(in, part, count, to);
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::conv_kernels {

static_assert(proves_filtering(derive_winograd<2, 3>()) && proves_filtering(derive_winograd<4, 3>()));

HWY_EXPORT(data_for);
HWY_EXPORT(gradients_for);
HWY_EXPORT(products_for);
HWY_EXPORT(filters_for);
HWY_EXPORT(fold_for);

void winograd_data(int m, const tiled::TileRead& read) { HWY_DYNAMIC_DISPATCH(data_for)(m, read); }
void winograd_gradients(int m, const tiled::TileRead& read) { HWY_DYNAMIC_DISPATCH(gradients_for)(m, read); }
void winograd_products(int m, const tiled::TileWrite& write) { HWY_DYNAMIC_DISPATCH(products_for)(m, write); }
void winograd_filters(int m, const float* from, bool rotated, int64_t count, const tiled::FilterPlaces& to) {
  HWY_DYNAMIC_DISPATCH(filters_for)(m, from, rotated, count, to.first, to.part);
}
void winograd_fold(int m, const tiled::FilterPlaces& from, int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(fold_for)(m, from.first, from.part, count, to);
}

}  // namespace trireme::ops::conv_kernels
#endif

// For every SIMD target. The last channels of a pixel, fewer than a vector holds, are loaded and stored by a mask.
#include "trireme/ops/passes/pool_kernels.h"

#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/passes/pool_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::pool::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Numbers = hn::CappedTag<float, 16>;
using Places = hn::RebindToSigned<Numbers>;
using Bytes = hn::Rebind<uint8_t, Numbers>;
using F = hn::Vec<Numbers>;
constexpr int64_t kNumbers = static_cast<int64_t>(hn::MaxLanes(Numbers()));

// How a vector is read and written: whole, or its first `count` lanes.
struct Whole {
  HWY_INLINE F load(const float* p) const { return hn::LoadU(Numbers(), p); }
  HWY_INLINE void store(F value, float* p) const { hn::StoreU(value, Numbers(), p); }
  HWY_INLINE hn::Vec<Places> places(const uint8_t* p) const { return hn::PromoteTo(Places(), hn::LoadU(Bytes(), p)); }
  HWY_INLINE void store_places(hn::Vec<Places> value, uint8_t* p) const {
    hn::StoreU(hn::DemoteTo(Bytes(), value), Bytes(), p);
  }
};
struct Some {
  int64_t count;
  HWY_INLINE hn::Mask<Numbers> mask() const { return hn::FirstN(Numbers(), static_cast<std::size_t>(count)); }
  HWY_INLINE F load(const float* p) const { return hn::MaskedLoad(mask(), Numbers(), p); }
  HWY_INLINE void store(F value, float* p) const { hn::BlendedStore(value, mask(), Numbers(), p); }
  HWY_INLINE hn::Vec<Places> places(const uint8_t* p) const {
    uint8_t bytes[kNumbers] = {};
    std::memcpy(bytes, p, static_cast<std::size_t>(count));
    return hn::PromoteTo(Places(), hn::LoadU(Bytes(), bytes));
  }
  HWY_INLINE void store_places(hn::Vec<Places> value, uint8_t* p) const {
    uint8_t bytes[kNumbers];
    hn::StoreU(hn::DemoteTo(Bytes(), value), Bytes(), bytes);
    std::memcpy(p, bytes, static_cast<std::size_t>(count));
  }
};

// body(first channel, how to read) for each vector of a pixel.
template <class Body>
HWY_INLINE void each_vector(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kNumbers <= channels; c += kNumbers) body(c, Whole());
  if (c < channels) body(c, Some{channels - c});
}

template <bool kRelu>
HWY_INLINE void largest_of(const Window& window, int64_t channels, float* y, uint8_t* chosen) {
  each_vector(channels, [&](int64_t c, auto io) HWY_ATTR {
    // With ReLU the largest starts from 0, which no pixel is; without, the first pixel is taken as it is.
    F most = kRelu ? hn::Zero(Numbers()) : io.load(window.x + c);
    auto place = hn::Set(Places(), kRelu ? 255 : 0);
    for (int64_t i = 0; i < window.rows; ++i) {
      for (int64_t j = 0; j < window.columns; ++j) {
        if (!kRelu && i == 0 && j == 0) continue;
        const F value = io.load(window.x + i * window.row + j * channels + c);
        const auto more = hn::Or(hn::Gt(value, most), hn::IsNaN(value));
        most = hn::IfThenElse(more, value, most);
        place = hn::IfThenElse(hn::RebindMask(Places(), more),
                               hn::Set(Places(), static_cast<int32_t>(i * window.columns + j)), place);
      }
    }
    io.store(most, y + c);
    io.store_places(place, chosen + c);
  });
}

void largest_for(const Window& window, int64_t channels, bool relu, float* y, uint8_t* chosen) {
  relu ? largest_of<true>(window, channels, y, chosen) : largest_of<false>(window, channels, y, chosen);
}

void mean_for(const Window& window, int64_t channels, float by, float* y) {
  each_vector(channels, [&](int64_t c, auto io) HWY_ATTR {
    F sum = hn::Zero(Numbers());
    for (int64_t i = 0; i < window.rows; ++i) {
      for (int64_t j = 0; j < window.columns; ++j) {
        sum = hn::Add(sum, io.load(window.x + i * window.row + j * channels + c));
      }
    }
    io.store(hn::Mul(sum, hn::Set(Numbers(), by)), y + c);
  });
}

void add_chosen_for(const float* gradient, const uint8_t* chosen, uint8_t place, int64_t channels, bool first,
                    float* dx) {
  each_vector(channels, [&](int64_t c, auto io) HWY_ATTR {
    const auto taken = hn::Eq(io.places(chosen + c), hn::Set(Places(), place));
    const F g = hn::IfThenElseZero(hn::RebindMask(Numbers(), taken), io.load(gradient + c));
    io.store(first ? g : hn::Add(io.load(dx + c), g), dx + c);
  });
}

void add_scaled_for(const float* gradient, float by, int64_t channels, bool first, float* dx) {
  each_vector(channels, [&](int64_t c, auto io) HWY_ATTR {
    const F g = hn::Mul(io.load(gradient + c), hn::Set(Numbers(), by));
    io.store(first ? g : hn::Add(io.load(dx + c), g), dx + c);
  });
}

}  // namespace trireme::ops::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops::pool {

HWY_EXPORT(largest_for);
HWY_EXPORT(mean_for);
HWY_EXPORT(add_chosen_for);
HWY_EXPORT(add_scaled_for);

void largest(const Window& window, int64_t channels, bool relu, float* y, uint8_t* chosen) {
  HWY_DYNAMIC_DISPATCH(largest_for)(window, channels, relu, y, chosen);
}
void mean(const Window& window, int64_t channels, float by, float* y) {
  HWY_DYNAMIC_DISPATCH(mean_for)(window, channels, by, y);
}
void add_chosen(const float* gradient, const uint8_t* chosen, uint8_t place, int64_t channels, bool first, float* dx) {
  HWY_DYNAMIC_DISPATCH(add_chosen_for)(gradient, chosen, place, channels, first, dx);
}
void add_scaled(const float* gradient, float by, int64_t channels, bool first, float* dx) {
  HWY_DYNAMIC_DISPATCH(add_scaled_for)(gradient, by, channels, first, dx);
}

}  // namespace trireme::ops::pool
#endif

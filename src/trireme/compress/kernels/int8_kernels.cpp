// int8's blocks, for every SIMD target.
#include "trireme/compress/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/compress/kernels/int8_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/compress/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::compress::kernels::HWY_NAMESPACE {

struct Int8 {
  static constexpr std::size_t kBlock = kInt8Block, kHead = sizeof(float), kPlane = kInt8Block, kMostPlanes = 1;
  static constexpr std::size_t planes() { return 1; }
};
using I8 = hn::Rebind<std::int8_t, I32>;
constexpr float kLevels = 127;

bool int8_encode_for(const float* x, std::size_t n, std::byte* message, float* left) {
  return encode_blocks(
      Int8(), x, n, message, left, [](const float* from, std::size_t, std::byte* to, float* rest) HWY_ATTR {
        const std::uint32_t largest = largest_bits<kInt8Block>(from);
        const Step step = step_of(largest, kLevels);
        put(to, step.step);
        auto* const q = reinterpret_cast<std::int8_t*>(to + Int8::kHead);
        quantize<kInt8Block>(from, step, kLevels, Nearest(), rest,
                             [&](std::size_t i, auto v) HWY_ATTR { hn::StoreU(hn::DemoteTo(I8(), v), I8(), q + i); });
        return largest < 0x7f800000;
      });
}

template <class To>
void int8_decode_to(const std::byte* message, std::size_t n, float* out, const To& to) {
  decode_blocks(Int8(), message, n, out, [&](const std::byte* from, std::size_t, float* block) HWY_ATTR {
    const auto step = hn::Set(F32(), get(from));
    const auto* const q = reinterpret_cast<const std::int8_t*>(from + Int8::kHead);
    for (std::size_t i = 0; i < kInt8Block; i += kLanes) {
      const auto v = hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(I8(), q + i)));
      to(hn::Mul(v, step), block + i);
    }
  });
}
void int8_decode_for(const std::byte* message, std::size_t n, float* out) { int8_decode_to(message, n, out, Put()); }
void int8_add_for(const std::byte* message, std::size_t n, float factor, float* out) {
  int8_decode_to(message, n, out, Add{factor});
}

}  // namespace trireme::compress::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::compress::kernels {

HWY_EXPORT(int8_encode_for);
HWY_EXPORT(int8_decode_for);
HWY_EXPORT(int8_add_for);

bool int8_encode(const float* x, std::size_t n, std::byte* message, float* left) {
  return HWY_DYNAMIC_DISPATCH(int8_encode_for)(x, n, message, left);
}
void int8_decode(const std::byte* message, std::size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(int8_decode_for)(message, n, out);
}
void int8_add(const std::byte* message, std::size_t n, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(int8_add_for)(message, n, factor, out);
}

}  // namespace trireme::compress::kernels
#endif

// reduce and fold of integers, for every SIMD target. Sums and products wrap alike with and without a sign; bitwise
// operators see bytes. The average is rare: it sums block by block and divides there.
#include "trireme/collective/reduce/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/collective/reduce/reduce_integer.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/collective/reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

template <class T>
void divide_integers(void* data, std::size_t elements, int by) {
  auto* at = static_cast<std::byte*>(data);
  for (std::size_t i = 0; i < elements; ++i, at += sizeof(T)) {
    T x;
    std::memcpy(&x, at, sizeof(T));
    x = static_cast<T>(x / by);
    std::memcpy(at, &x, sizeof(T));
  }
}

// E is how T is summed.
template <class T, class E>
void average(std::span<const void* const> ins, std::span<void* const> outs, std::size_t elements, Store store) {
  TRIREME_CHECK(!ins.empty());
  if (ins.size() == 1) return spread(ins[0], outs, elements * sizeof(T), store);
  constexpr std::size_t kBlock = 4096 / sizeof(T);
  alignas(64) std::byte sums[4096];
  void* const to = sums;
  const auto block = [&](const Pass& pass) HWY_ATTR {
    fold_pass<E, Sum>(Pass{pass.ins, pass.in_offset, &to, 0, 1, pass.elements}, ins.size());
    divide_integers<T>(sums, pass.elements, static_cast<int>(ins.size()));
    const void* const from = sums;
    run<Plain<std::uint8_t>, Sum, 1>(
        Pass{&from, 0, pass.outs, pass.out_offset, pass.outs_count, pass.elements * sizeof(T), pass.streaming});
  };
  aligned_passes<T>(whole_pass(ins, outs, elements, store), [&](Pass pass) HWY_ATTR {
    const std::size_t total = pass.elements;
    for (std::size_t done = 0; done < total; done += kBlock) {
      pass.elements = total - done < kBlock ? total - done : kBlock;
      block(pass);
      pass.in_offset += kBlock * sizeof(T);
      pass.out_offset += kBlock * sizeof(T);
    }
  });
}

using Bytes = Plain<std::uint8_t>;

template <class O, std::size_t Size>
constexpr Functions bitwise() {
  return {[](void* into, const void* from, std::size_t elements) { reduce<Bytes, O>(into, from, elements * Size); },
          [](std::span<const void* const> ins, std::span<void* const> outs, std::size_t elements, Store store) {
            fold<Bytes, O>(ins, outs, elements * Size, store);
          }};
}

// T decides what is less and how a sum is divided; E sums and multiplies.
template <class T, class E = Plain<T>>
Functions integers(Op op) {
  switch (op) {
    case Op::avg:
      return {reduce<E, Sum>, average<T, E>};
    case Op::min:
      return {reduce<Plain<T>, Min>, fold<Plain<T>, Min>};
    case Op::max:
      return {reduce<Plain<T>, Max>, fold<Plain<T>, Max>};
    case Op::prod:
      return {reduce<E, Prod>, fold<E, Prod>};
    case Op::band:
      return bitwise<And, sizeof(T)>();
    case Op::bor:
      return bitwise<Or, sizeof(T)>();
    case Op::bxor:
      return bitwise<Xor, sizeof(T)>();
    default:
      return {reduce<E, Sum>, fold<E, Sum>};
  }
}

Functions integer_for(DType type, Op op) {
  switch (type) {
    case DType::i8:
      return integers<std::int8_t, Bytes>(op);
    case DType::u8:
      return integers<std::uint8_t>(op);
    case DType::i32:
      return integers<std::int32_t>(op);
    default:
      return integers<std::int64_t>(op);
  }
}

Divide integer_divide_for(DType type) {
  switch (type) {
    case DType::i8:
      return divide_integers<std::int8_t>;
    case DType::u8:
      return divide_integers<std::uint8_t>;
    case DType::i32:
      return divide_integers<std::int32_t>;
    default:
      return divide_integers<std::int64_t>;
  }
}

Spread spread_for() { return spread; }

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::kernels {

HWY_EXPORT(integer_for);
HWY_EXPORT(integer_divide_for);
HWY_EXPORT(spread_for);

Functions integer_functions(DType type, Op op) { return HWY_DYNAMIC_DISPATCH(integer_for)(type, op); }
Divide integer_divide(DType type) { return HWY_DYNAMIC_DISPATCH(integer_divide_for)(type); }
Spread spread_function() { return HWY_DYNAMIC_DISPATCH(spread_for)(); }

}  // namespace trireme::kernels
#endif

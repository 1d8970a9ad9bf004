// The loops of reduce and fold. Included once per SIMD target.
//
// A vector of every input is folded in registers, in the canonical order, and the result is stored to every output
// before the next inputs are read; hence an output may lie on an input. More than eight inputs are folded block by
// block, leaves of eight at a time, on a stack of partial results as a binary counter grows: that is the canonical tree
// again. Each element's value depends on its inputs alone: not on its place, the vector width or which loop it met.
#if defined(TRIREME_COLLECTIVE_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_COLLECTIVE_FOLD_INL_H_
#undef TRIREME_COLLECTIVE_FOLD_INL_H_
#else
#define TRIREME_COLLECTIVE_FOLD_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "trireme/base/error.h"
#include "trireme/collective/reduce/elements-inl.h"
#include "trireme/collective/reduce/kernels.h"
#include "trireme/collective/reduce/load_store-inl.h"
#include "trireme/collective/reduce/reduce.h"
#include "trireme/collective/schedule.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::kernels::HWY_NAMESPACE {

// One pass over `elements`; pointers are byte addresses, each shifted by its offset.
struct Pass {
  const void* const* ins;
  std::size_t in_offset;
  void* const* outs;
  std::size_t out_offset;
  std::size_t outs_count;
  std::size_t elements;
  bool streaming = false;
  int divisor = 1;  // floats only: divides the result
};

// Division of the result: by a power of two it is a multiplication, with the same rounding.
template <class E>
class Finish {
 public:
  explicit HWY_INLINE Finish(int divisor)
      : how_(divisor == 1                     ? kNothing
             : (divisor & (divisor - 1)) == 0 ? kMultiply
                                              : kDivide),
        factor_(how_ == kMultiply ? 1 / static_cast<T>(divisor) : static_cast<T>(divisor)) {}

  template <class... W>
  HWY_INLINE void operator()(W&... w) const {
    if (HWY_LIKELY(how_ == kNothing)) return;
    const auto factor = hn::Set(typename E::Number(), factor_);
    if (how_ == kMultiply) {
      ((w = each([&](auto v) HWY_ATTR { return hn::Mul(v, factor); }, w)), ...);
    } else {
      ((w = each([&](auto v) HWY_ATTR { return hn::Div(v, factor); }, w)), ...);
    }
  }

 private:
  using T = hn::TFromD<typename E::Number>;
  enum How { kNothing, kMultiply, kDivide } how_;
  T factor_;
};

struct NoFinish {
  explicit HWY_INLINE NoFinish(int) {}
  template <class... W>
  HWY_INLINE void operator()(W&...) const {}
};

template <class E, class O>
using FinishOf =
    std::conditional_t<std::is_same_v<O, Sum> && hwy::IsFloat<hn::TFromD<typename E::Number>>(), Finish<E>, NoFinish>;

// The canonical tree over K vectors, which `load(k)` gives.
template <class O, int First, int K, class Load>
HWY_INLINE auto tree(const Load& load) {
  if constexpr (K == 1) {
    return load(First);
  } else {
    constexpr int kLeft = canonical_split(K);
    const auto left = tree<O, First, kLeft>(load);
    const auto right = tree<O, First + kLeft, K - kLeft>(load);
    return each(O(), left, right);
  }
}

template <class E, class O, int K, class From = Raw<E>, class To = Raw<E>>
HWY_NOINLINE void run(const Pass& pass) {
  constexpr std::size_t kLanes = hn::MaxLanes(typename E::Stored());
  const FinishOf<E, O> finish(pass.divisor);
  const std::byte* ins[K];
  for (int k = 0; k < K; ++k) ins[k] = static_cast<const std::byte*>(pass.ins[k]) + pass.in_offset;
  const auto out = [&](std::size_t j, std::size_t vector) HWY_ATTR {
    return static_cast<std::byte*>(pass.outs[j]) + pass.out_offset + vector * To::kBytes;
  };
  const std::size_t outs_count = pass.outs_count;
  const auto streams = [&](std::size_t j) HWY_ATTR { return pass.streaming && To::can_stream(out(j, 0)); };
  // The first outputs are kept at hand, the others looked up anew each time.
  constexpr std::size_t kHeld = 4;
  std::byte* held[kHeld] = {};
  bool held_streams[kHeld] = {};
  const std::size_t held_count = outs_count < kHeld ? outs_count : kHeld;
  for (std::size_t j = 0; j < held_count; ++j) {
    held[j] = out(j, 0);
    held_streams[j] = streams(j);
  }

  std::size_t left = pass.elements, vector = 0;
  for (; left >= 4 * kLanes; left -= 4 * kLanes, vector += 4) {
    const auto result = [&](std::size_t at) HWY_ATTR {
      return tree<O, 0, K>([&](int k) HWY_ATTR { return From::load(ins[k] + at * From::kBytes); });
    };
    auto a = result(vector), b = result(vector + 1), c = result(vector + 2), d = result(vector + 3);
    finish(a, b, c, d);
    const Four<To> four{To::pack(a), To::pack(b), To::pack(c), To::pack(d)};
    for (std::size_t j = 0; j < kHeld; ++j) {
      if (j < held_count) four.store(held[j] + vector * To::kBytes, held_streams[j]);
    }
    for (std::size_t j = kHeld; j < outs_count; ++j) four.store(out(j, vector), streams(j));
  }
  for (; left > 0; ++vector) {
    const std::size_t lanes = left < kLanes ? left : kLanes, at = vector * From::kBytes;
    auto wide = tree<O, 0, K>([&](int k) HWY_ATTR { return From::load_part(ins[k] + at, lanes); });
    finish(wide);
    const auto packed = To::pack(wide);
    for (std::size_t j = 0; j < outs_count; ++j) To::store_part(packed, out(j, vector), lanes);
    left -= lanes;
  }
}

// The most inputs that one loop takes. Few, to compile fast, where speed matters less: old machines, rare operators.
template <class O>
inline constexpr int kWidest = std::is_same_v<O, Sum>&& HWY_TARGET != HWY_SSE4&& HWY_TARGET != HWY_SCALAR ? 8 : 2;

// Partial results of one block: level i holds `leaves[i]` inputs, each level more than all above it together.
template <class E, class O>
class Stack {
 public:
  explicit Stack(const Pass& pass) : pass_(pass) {}

  // Folds the block of `pass` over k inputs, k ≥ 2, into its outputs.
  void fold(int k) {
    for (int next = 0; next < k;) {
      const int leaf = k - next >= kWidest<O> ? kWidest<O> : canonical_split(k - next + 1);
      push(next, leaf);
      next += leaf;
      while (next < k && depth_ >= 2 && leaves_[depth_ - 2] == leaves_[depth_ - 1]) merge();
    }
    while (depth_ > 2) merge();
    const void* const both[] = {levels_[0], levels_[1]};
    Pass last = pass_;
    last.ins = both;
    last.in_offset = 0;
    run<E, O, 2, Block, Raw<E>>(last);
  }

  static constexpr std::size_t kElements = 2048 / sizeof(typename E::Wide) * hn::MaxLanes(typename E::Stored());

 private:
  using Block = std::conditional_t<E::kWidens, Kept<E>, Raw<E>>;
  static constexpr int kLevels = 32;  // enough for any int

  void push(int first, int leaf) {
    void* const to = levels_[depth_];
    const Pass pass{pass_.ins + first, pass_.in_offset, &to, 0, 1, pass_.elements};
    if (leaf == 1) run<E, Sum, 1, Raw<E>, Block>(pass);
    if (leaf == 2) run<E, O, 2, Raw<E>, Block>(pass);
    if constexpr (kWidest<O> == 8) {
      if (leaf == 4) run<E, O, 4, Raw<E>, Block>(pass);
      if (leaf == 8) run<E, O, 8, Raw<E>, Block>(pass);
    }
    leaves_[depth_++] = leaf;
  }

  void merge() {
    --depth_;
    const void* const both[] = {levels_[depth_ - 1], levels_[depth_]};
    void* const to = levels_[depth_ - 1];
    const Pass pass{both, 0, &to, 0, 1, pass_.elements};
    run<E, O, 2, Block, Block>(pass);
    leaves_[depth_ - 1] += leaves_[depth_];
  }

  const Pass& pass_;
  int depth_ = 0;
  int leaves_[kLevels];
  alignas(64) std::byte levels_[kLevels][2048];
};

template <class E, class O>
HWY_NOINLINE void fold_blocks(const Pass& pass, int k) {
  constexpr std::size_t kBlock = Stack<E, O>::kElements;
  for (std::size_t done = 0; done < pass.elements; done += kBlock) {
    Pass block = pass;
    block.in_offset += done * sizeof(typename E::Value);
    block.out_offset += done * sizeof(typename E::Value);
    block.elements = pass.elements - done < kBlock ? pass.elements - done : kBlock;
    Stack<E, O>(block).fold(k);
  }
}

template <class E, class O>
HWY_NOINLINE void fold_pass(const Pass& pass, std::size_t k) {
  if (k == 2) return run<E, O, 2>(pass);
  if constexpr (kWidest<O> == 8) {
    if (k == 3) return run<E, O, 3>(pass);
    if (k == 4) return run<E, O, 4>(pass);
    if (k == 8) return run<E, O, 8>(pass);
  }
  fold_blocks<E, O>(pass, static_cast<int>(k));
}

// Runs `body(pass)`, for streaming first over the few elements before the first output's next 64-byte boundary.
template <class T, class Body>
HWY_INLINE void aligned_passes(Pass pass, Body body) {
  if (pass.elements == 0 || pass.outs_count == 0) return;
  if (pass.streaming) {
    const std::size_t over = reinterpret_cast<std::uintptr_t>(pass.outs[0]) % 64;
    std::size_t head = over % sizeof(T) == 0 ? (64 - over) % 64 / sizeof(T) : 0;
    if (head > pass.elements) head = pass.elements;
    if (head > 0) {
      Pass first = pass;
      first.elements = head;
      first.streaming = false;
      body(first);
      pass.in_offset += head * sizeof(T);
      pass.out_offset += head * sizeof(T);
      pass.elements -= head;
    }
  }
  if (pass.elements == 0) return;
  body(pass);
  if (pass.streaming) hwy::FlushStream();  // so that a later release store publishes the results
}

HWY_INLINE Pass whole_pass(std::span<const void* const> ins, std::span<void* const> outs, std::size_t elements,
                           Store store) {
  return {ins.data(), 0, outs.data(), 0, outs.size(), elements, store == Store::streaming};
}

// Bytes from one place to many.
HWY_NOINLINE inline void spread(const void* from, std::span<void* const> outs, std::size_t bytes, Store store) {
  aligned_passes<std::uint8_t>(whole_pass({&from, 1}, outs, bytes, store),
                               [](const Pass& pass) HWY_ATTR { run<Plain<std::uint8_t>, Sum, 1>(pass); });
}

template <class E, class O>
void reduce(void* into, const void* from, std::size_t elements) {
  const void* const ins[] = {into, from};
  run<E, O, 2>(Pass{ins, 0, &into, 0, 1, elements});
}

template <class E, class O, bool Average = false>
void fold(std::span<const void* const> ins, std::span<void* const> outs, std::size_t elements, Store store) {
  TRIREME_CHECK(!ins.empty());
  if (ins.size() == 1) return spread(ins[0], outs, elements * sizeof(typename E::Value), store);
  Pass pass = whole_pass(ins, outs, elements, store);
  if (Average) pass.divisor = static_cast<int>(ins.size());
  aligned_passes<typename E::Value>(pass, [&](const Pass& part) HWY_ATTR { fold_pass<E, O>(part, ins.size()); });
}

template <class E>
Functions arithmetic(Op op) {
  switch (op) {
    case Op::avg:
      return {reduce<E, Sum>, fold<E, Sum, true>};
    case Op::min:
      return {reduce<E, Min>, fold<E, Min>};
    case Op::max:
      return {reduce<E, Max>, fold<E, Max>};
    case Op::prod:
      return {reduce<E, Prod>, fold<E, Prod>};
    default:
      return {reduce<E, Sum>, fold<E, Sum>};
  }
}

template <class E>
void divide_floats(void* data, std::size_t elements, int by) {
  const void* const from = data;
  run<E, Sum, 1>(Pass{&from, 0, &data, 0, 1, elements, false, by});
}

}  // namespace trireme::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

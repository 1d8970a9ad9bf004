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

#include "trireme/collective/kernels.h"
#include "trireme/collective/lanes-inl.h"
#include "trireme/collective/reduce.h"
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

  template <class W, std::size_t U>
  HWY_INLINE void operator()(W (&w)[U]) const {
    if (HWY_LIKELY(how_ == kNothing)) return;
    const auto factor = hn::Set(typename E::Number(), factor_);
    if (how_ == kMultiply) {
      for (W& x : w) x = each([&](auto v) HWY_ATTR { return hn::Mul(v, factor); }, x);
    } else {
      for (W& x : w) x = each([&](auto v) HWY_ATTR { return hn::Div(v, factor); }, x);
    }
  }

 private:
  using T = hn::TFromD<typename E::Number>;
  enum How { kNothing, kMultiply, kDivide } how_;
  T factor_;
};

struct NoFinish {
  explicit HWY_INLINE NoFinish(int) {}
  template <class W>
  HWY_INLINE void operator()(W&) const {}
};

template <class E, class O>
using FinishOf =
    std::conditional_t<std::is_same_v<O, Sum> && hwy::IsFloat<hn::TFromD<typename E::Number>>(), Finish<E>, NoFinish>;

// Some bytes, then zeros up to `padded`; out of line because tails would otherwise be most of the code.
HWY_NOINLINE inline void copy_part(void* to, const void* from, std::size_t bytes, std::size_t padded) {
  std::memcpy(to, from, bytes);
  if (padded > bytes) std::memset(static_cast<std::byte*>(to) + bytes, 0, padded - bytes);
}

// Memory as elements are stored: a vector at a time, the last one perhaps in part.
template <class E>
struct Raw {
  using D = typename E::Stored;
  using T = typename E::Value;
  using Wide = typename E::Wide;
  using Packed = hn::Vec<D>;
  static constexpr std::size_t kBytes = sizeof(T) * hn::MaxLanes(D());
  static constexpr bool kStreams = kBytes >= 16;  // Highway streams 16 bytes even of a shorter vector

  static HWY_INLINE Packed pack(Wide w) { return E::narrow(w); }

  static HWY_INLINE Wide load(const std::byte* from) {
    return E::widen(hn::LoadU(D(), reinterpret_cast<const T*>(from)));
  }
  template <std::size_t U>
  static HWY_INLINE void store(const Packed (&p)[U], std::byte* to, bool streaming) {
    if (kStreams && streaming && reinterpret_cast<std::uintptr_t>(to) % kBytes == 0) {
      for (std::size_t u = 0; u < U; ++u) hn::Stream(p[u], D(), reinterpret_cast<T*>(to + u * kBytes));
    } else {
      for (std::size_t u = 0; u < U; ++u) hn::StoreU(p[u], D(), reinterpret_cast<T*>(to + u * kBytes));
    }
  }

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t lanes) {
    return E::widen(hn::MaskedLoad(hn::FirstN(D(), lanes), D(), reinterpret_cast<const T*>(from)));
  }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t lanes) {
    hn::BlendedStore(p, hn::FirstN(D(), lanes), D(), reinterpret_cast<T*>(to));
  }
#else
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t lanes) {
    if (HWY_LIKELY(lanes == hn::MaxLanes(D()))) return load(from);
    HWY_ALIGN T part[hn::MaxLanes(D())];
    copy_part(part, from, lanes * sizeof(T), kBytes);
    return E::widen(hn::Load(D(), part));
  }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t lanes) {
    if (HWY_LIKELY(lanes == hn::MaxLanes(D()))) return hn::StoreU(p, D(), reinterpret_cast<T*>(to));
    HWY_ALIGN T part[hn::MaxLanes(D())];
    hn::Store(p, D(), part);
    copy_part(to, part, lanes * sizeof(T), 0);
  }
#endif
};

// Scratch that keeps widened vectors, whole even where the elements end earlier.
template <class E>
struct Kept {
  using Wide = typename E::Wide;
  using Packed = Wide;
  static constexpr std::size_t kBytes = sizeof(Wide);
  static HWY_INLINE Packed pack(Wide w) { return w; }
  static HWY_INLINE Wide load(const std::byte* from) {
    Wide w;
    std::memcpy(&w, from, kBytes);
    return w;
  }
  template <std::size_t U>
  static HWY_INLINE void store(const Packed (&p)[U], std::byte* to, bool) {
    for (std::size_t u = 0; u < U; ++u) std::memcpy(to + u * kBytes, &p[u], kBytes);
  }
  static HWY_INLINE Wide load_part(const std::byte* from, std::size_t) { return load(from); }
  static HWY_INLINE void store_part(Packed p, std::byte* to, std::size_t) { std::memcpy(to, &p, kBytes); }
};

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

// Vectors of each input per turn of the loop: one cache line at least, for streaming.
inline constexpr std::size_t kUnroll = HWY_TARGET == HWY_SCALAR ? 1 : 4;

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
  const bool streaming = pass.streaming;

  std::size_t left = pass.elements, vector = 0;
  for (; left >= kUnroll * kLanes; left -= kUnroll * kLanes, vector += kUnroll) {
    typename E::Wide wide[kUnroll];
    typename To::Packed packed[kUnroll];
    for (std::size_t u = 0; u < kUnroll; ++u) {
      const std::size_t at = (vector + u) * From::kBytes;
      wide[u] = tree<O, 0, K>([&](int k) HWY_ATTR { return From::load(ins[k] + at); });
    }
    finish(wide);
    for (std::size_t u = 0; u < kUnroll; ++u) packed[u] = To::pack(wide[u]);
    for (std::size_t j = 0; j < outs_count; ++j) To::store(packed, out(j, vector), streaming);
  }
  for (; left > 0; ++vector) {
    const std::size_t lanes = left < kLanes ? left : kLanes, at = vector * From::kBytes;
    typename E::Wide wide[] = {tree<O, 0, K>([&](int k) HWY_ATTR { return From::load_part(ins[k] + at, lanes); })};
    finish(wide);
    const auto packed = To::pack(wide[0]);
    for (std::size_t j = 0; j < outs_count; ++j) To::store_part(packed, out(j, vector), lanes);
    left -= lanes;
  }
}

// The most inputs that one loop takes. Few, to compile fast, where speed does not matter: old machines, rare operators.
template <class O>
inline constexpr int kWidest = HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_SSE4 ? 2
                               : std::is_same_v<O, Sum>                           ? 8
                                                                                  : 4;

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
    if constexpr (kWidest<O> >= 4) {
      if (leaf == 4) run<E, O, 4, Raw<E>, Block>(pass);
    }
    if constexpr (kWidest<O> >= 8) {
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
HWY_NOINLINE void fold_pass(const Pass& pass, std::size_t k) {
  if (k == 2) return run<E, O, 2>(pass);
  if constexpr (kWidest<O> >= 4) {
    if (k == 4) return run<E, O, 4>(pass);
  }
  if constexpr (kWidest<O> >= 8) {
    if (k == 3) return run<E, O, 3>(pass);
    if (k == 8) return run<E, O, 8>(pass);
  }
  constexpr std::size_t kBlock = Stack<E, O>::kElements;
  for (std::size_t done = 0; done < pass.elements; done += kBlock) {
    Pass block = pass;
    block.in_offset += done * sizeof(typename E::Value);
    block.out_offset += done * sizeof(typename E::Value);
    block.elements = pass.elements - done < kBlock ? pass.elements - done : kBlock;
    Stack<E, O>(block).fold(static_cast<int>(k));
  }
}

// Runs `body(pass)`, for streaming first over the few elements before the first output's next 64-byte boundary.
template <class T, class Body>
HWY_INLINE void aligned_passes(Pass pass, Body body) {
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
  return {ins.data(), 0, outs.data(), 0, outs.size(), outs.empty() ? 0 : elements, store == Store::streaming};
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

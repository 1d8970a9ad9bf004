// Products with Winograd's matrices in vectors of channels, written out by the compiler from the derived matrices:
// nothing is multiplied by 0 or 1, and of a pair of rows ±a the parts that they share are computed once.
#if defined(TRIREME_OPS_WINOGRAD_TRANSFORMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIREME_OPS_WINOGRAD_TRANSFORMS_INL_H
#undef TRIREME_OPS_WINOGRAD_TRANSFORMS_INL_H
#else
#define TRIREME_OPS_WINOGRAD_TRANSFORMS_INL_H
#endif

#include <hwy/highway.h>

#include "trireme/ops/conv/tiled/channels-inl.h"
#include "trireme/ops/conv/winograd/matrices.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::conv_kernels::HWY_NAMESPACE {

// The matrices of F(m, 3).
template <int m>
struct MatrixA {
  static constexpr auto of = derive_winograd<m, 3>().a;
};
template <int m>
struct MatrixG {
  static constexpr auto of = derive_winograd<m, 3>().g;
};
template <int m>
struct MatrixB {
  static constexpr auto of = derive_winograd<m, 3>().b;
};

enum class Part { all, even, odd };

// Whether a row's coefficient belongs to a part: of a pair of rows, even ones are equal, odd ones opposite.
template <class M, int row, Part part>
constexpr bool has(int column) {
  const Rational x = M::of[row][static_cast<std::size_t>(column)];
  if (x == Rational(0)) return false;
  if constexpr (part == Part::all) {
    return true;
  } else {
    return (M::of[row + 1][static_cast<std::size_t>(column)] == x) == (part == Part::even);
  }
}

template <class M, int row, Part part>
constexpr int first_column() {
  int column = 0;
  while (column < static_cast<int>(M::of[0].size()) && !has<M, row, part>(column)) ++column;
  return column;
}

// sum + M[row][column] · x
template <class M, int row, int column>
HWY_INLINE Vector add_term(Vector sum, Vector x) {
  constexpr Rational factor = M::of[row][column];
  if constexpr (factor == Rational(1)) {
    return hn::Add(sum, x);
  } else if constexpr (factor == Rational(-1)) {
    return hn::Sub(sum, x);
  } else {
    return hn::MulAdd(hn::Set(Channels(), static_cast<float>(factor)), x, sum);
  }
}

template <class M, int row, Part part, int column>
HWY_INLINE Vector add_from(Vector sum, const Vector* in) {
  if constexpr (column < static_cast<int>(M::of[0].size())) {
    if constexpr (has<M, row, part>(column)) sum = add_term<M, row, column>(sum, in[column]);
    return add_from<M, row, part, column + 1>(sum, in);
  } else {
    return sum;
  }
}

// A row of M times `in`, or the even or odd part of it.
template <class M, int row, Part part>
HWY_INLINE Vector times_row(const Vector* in) {
  constexpr int first = first_column<M, row, part>();
  if constexpr (first == static_cast<int>(M::of[0].size())) {
    return hn::Zero(Channels());
  } else if constexpr (M::of[row][first] == Rational(1)) {
    return add_from<M, row, part, first + 1>(in[first], in);
  } else {
    constexpr auto factor = static_cast<float>(M::of[row][first]);
    return add_from<M, row, part, first + 1>(hn::Mul(hn::Set(Channels(), factor), in[first]), in);
  }
}

// out = M · in
template <class M, int row = 0>
HWY_INLINE void expand(const Vector* in, Vector* out) {
  constexpr int rows = static_cast<int>(M::of.size());
  if constexpr (row == 0 || row == rows - 1) {
    out[row] = times_row<M, row, Part::all>(in);
    if constexpr (row == 0) expand<M, 1>(in, out);
  } else {
    const Vector even = times_row<M, row, Part::even>(in), odd = times_row<M, row, Part::odd>(in);
    out[row] = hn::Add(even, odd);
    out[row + 1] = hn::Sub(even, odd);
    expand<M, row + 2>(in, out);
  }
}

template <class M, int column, int row>
HWY_INLINE Vector fold_from(Vector sum, const Vector* parts) {
  constexpr int rows = static_cast<int>(M::of.size());
  if constexpr (row < rows) {
    constexpr bool single = row == rows - 1;
    if constexpr (M::of[row][column] != Rational(0)) {
      constexpr bool odd = !single && M::of[row][column] != M::of[row + (single ? 0 : 1)][column];
      sum = add_term<M, row, column>(sum, parts[odd ? row + 1 : row]);
    }
    return fold_from < M, column, single ? row + 1 : row + 2 > (sum, parts);
  } else {
    return sum;
  }
}

template <class M, int column = 0>
HWY_INLINE void fold_columns(const Vector* parts, Vector* out) {
  if constexpr (column < static_cast<int>(M::of[0].size())) {
    out[column] = fold_from<M, column, 1>(
        M::of[0][column] == Rational(0) ? hn::Zero(Channels())
                                        : hn::Mul(hn::Set(Channels(), static_cast<float>(M::of[0][column])), parts[0]),
        parts);
    fold_columns<M, column + 1>(parts, out);
  }
}

// out = Mᵀ · in
template <class M>
HWY_INLINE void fold(const Vector* in, Vector* out) {
  constexpr int rows = static_cast<int>(M::of.size());
  Vector parts[rows];  // of a pair its sum and its difference
  parts[0] = in[0];
  parts[rows - 1] = in[rows - 1];
#pragma GCC unroll 8
  for (int row = 1; row + 1 < rows; row += 2) {
    parts[row] = hn::Add(in[row], in[row + 1]);
    parts[row + 1] = hn::Sub(in[row], in[row + 1]);
  }
  fold_columns<M>(parts, out);
}

// Both directions of a tile: put(i, j, vector) gets M X Mᵀ (expand) or Mᵀ X M (fold), X from get(i, j).
template <class M, bool kFold, class Get, class Put>
HWY_INLINE void transform_tile(const Get& get, const Put& put) {
  constexpr int rows = static_cast<int>(M::of.size()), columns = static_cast<int>(M::of[0].size());
  constexpr int in = kFold ? rows : columns, out = kFold ? columns : rows;
  Vector half[out][in];
#pragma GCC unroll 8
  for (int j = 0; j < in; ++j) {
    Vector from[in], to[out];
#pragma GCC unroll 8
    for (int i = 0; i < in; ++i) from[i] = get(i, j);
    if constexpr (kFold) {
      fold<M>(from, to);
    } else {
      expand<M>(from, to);
    }
#pragma GCC unroll 8
    for (int i = 0; i < out; ++i) half[i][j] = to[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < out; ++i) {
    Vector to[out];
    if constexpr (kFold) {
      fold<M>(half[i], to);
    } else {
      expand<M>(half[i], to);
    }
#pragma GCC unroll 8
    for (int j = 0; j < out; ++j) put(i, j, to[j]);
  }
}

}  // namespace trireme::ops::conv_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

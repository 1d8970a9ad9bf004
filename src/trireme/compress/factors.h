// The two thin factors of a matrix that powersgd sends, and what is done to them alone.
#pragma once
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "trireme/compress/kernels/kernels.h"

namespace trireme::compress {

// n rows, r columns, column by column as the kernels want them.
class Factor {
 public:
  Factor() = default;
  Factor(std::size_t n, std::size_t rank)
      : n_(n), rank_(rank), data_(hwy::AllocateAligned<float>(std::max<std::size_t>(1, size()))) {
    std::fill_n(data_.get(), size(), 0.0f);
  }

  std::size_t rows() const { return n_; }
  std::size_t rank() const { return rank_; }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> column(std::size_t k) { return {data() + k * stride(), n_}; }
  std::span<const float> column(std::size_t k) const { return {data() + k * stride(), n_}; }

  // As they travel: column after column, with nothing between.
  static constexpr std::size_t bytes(std::size_t n, std::size_t rank) { return n * rank * sizeof(float); }
  void write(std::byte* to) const {
    for (std::size_t k = 0; k < rank_; ++k) std::memcpy(to + bytes(n_, k), column(k).data(), bytes(n_, 1));
  }
  void read(const std::byte* from) {
    for (std::size_t k = 0; k < rank_; ++k) std::memcpy(column(k).data(), from + bytes(n_, k), bytes(n_, 1));
  }

 private:
  std::size_t stride() const { return kernels::column_stride(n_); }
  std::size_t size() const { return rank_ * stride(); }

  std::size_t n_ = 0, rank_ = 0;
  hwy::AlignedFreeUniquePtr<float[]> data_;
};

// Every column gets the sum of sizes `norm`; one of zeros is drawn anew from the key.
void normalize(Factor& factor, double norm, std::uint64_t key);
// Columns of length 1 at right angles, that span what the columns did (Gram-Schmidt, in f64, each twice). One that the
// columns before it span is drawn anew from the key.
void orthonormalize(Factor& factor, std::uint64_t key);
// factor ← 2⁻ᵉ·factor
void shrink(Factor& factor, int exponent);

}  // namespace trireme::compress

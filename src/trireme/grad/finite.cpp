#include "trireme/grad/finite.h"

#include <cstdint>
#include <vector>

namespace trireme::grad {
namespace {

#if defined(__x86_64__)
#define TRIREME_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define TRIREME_CLONES
#endif

TRIREME_CLONES bool finite_f32(const std::uint32_t* bits, std::int64_t count) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  constexpr std::int64_t kBlock = 4096;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    std::uint32_t found = 0;
    std::int64_t end = begin + kBlock < count ? begin + kBlock : count;
    for (std::int64_t i = begin; i < end; ++i) found |= (bits[i] & kExponent) == kExponent;
    if (found) return false;
  }
  return true;
}

TRIREME_CLONES double block_f32(const float* x, std::int64_t count) {
  constexpr int kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] += static_cast<double>(x[i + k]) * x[i + k];
  }
  for (int k = 0; i < count; ++i, ++k) lanes[k] += static_cast<double>(x[i]) * x[i];
  for (int step = kLanes / 2; step > 0; step /= 2) {
    for (int k = 0; k < step; ++k) lanes[k] += lanes[k + step];
  }
  return lanes[0];
}

double pairwise(const double* x, std::size_t count) {
  if (count == 0) return 0;
  if (count == 1) return x[0];
  return pairwise(x, count / 2) + pairwise(x + count / 2, count - count / 2);
}

bool plain_f32(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 && tensor.is_non_overlapping_and_dense();
}

}  // namespace

bool all_finite(const torch::Tensor& tensor) {
  if (!plain_f32(tensor)) return torch::isfinite(tensor).all().item<bool>();
  return finite_f32(static_cast<const std::uint32_t*>(tensor.data_ptr()), tensor.numel());
}

double sum_of_squares(const torch::Tensor& tensor) {
  if (!plain_f32(tensor)) return tensor.to(torch::kFloat64).square().sum().item<double>();
  constexpr std::int64_t kBlock = 4096;
  std::int64_t blocks = (tensor.numel() + kBlock - 1) / kBlock;
  std::vector<double> sums(blocks);
  const float* x = tensor.data_ptr<float>();
  at::parallel_for(0, blocks, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      sums[b] = block_f32(x + b * kBlock, std::min(kBlock, tensor.numel() - b * kBlock));
    }
  });
  return pairwise(sums.data(), sums.size());
}

}  // namespace trireme::grad

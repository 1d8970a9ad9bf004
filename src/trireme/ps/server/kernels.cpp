#include "trireme/ps/server/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "trireme/optim/clones.h"

namespace trireme::ps::kernels {

TRIREME_CLONES
void add(float* __restrict into, const float* __restrict a, const float* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = a[i] + b[i];
}

TRIREME_CLONES
void add_to(float* __restrict into, const float* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += b[i];
}

TRIREME_CLONES
void subtract(float* __restrict into, const float* __restrict a, const float* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = a[i] - b[i];
}

TRIREME_CLONES
Said said_of(const float* __restrict x, const float* __restrict left, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  double whole[kLanes] = {}, rest[kLanes] = {}, product[kLanes] = {}, told[kLanes] = {};
  const auto take = [&](std::size_t lane, std::size_t i) __attribute__((always_inline)) {
    const double all = x[i], missing = left[i], said = all - missing;
    whole[lane] += all * all;
    rest[lane] += missing * missing;
    product[lane] += all * said;
    told[lane] += said * said;
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, i + lane);
  }
  for (; i < n; ++i) take(i % kLanes, i);
  Said sums;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums.square += whole[lane];
    sums.square_left += rest[lane];
    sums.product += product[lane];
    sums.square_said += told[lane];
  }
  return sums;
}

#ifdef __SSE2__
void stream(float* into, const float* from, std::size_t n) {
  std::size_t i = 0;
  if (reinterpret_cast<std::uintptr_t>(into) % 16 == 0) {
    for (; i + 16 <= n; i += 16) {
      for (std::size_t j = 0; j < 16; j += 4) _mm_stream_ps(into + i + j, _mm_loadu_ps(from + i + j));
    }
  }
  std::memcpy(into + i, from + i, (n - i) * sizeof(float));
}
void stream_end() { _mm_sfence(); }
#else
void stream(float* into, const float* from, std::size_t n) { std::memcpy(into, from, n * sizeof(float)); }
void stream_end() {}
#endif

}  // namespace trireme::ps::kernels

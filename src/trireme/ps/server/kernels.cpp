#include "trireme/ps/server/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

// Each loop is compiled for several vector widths; the loader picks. Sanitizers do not survive that.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TRIREME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TRIREME_CLONES
#endif

namespace trireme::ps::kernels {

TRIREME_CLONES
void sgd(float* __restrict w, const float* __restrict g, float* __restrict m, std::size_t n, const Sgd& constants) {
  const Sgd c = constants;
  if (!m) {
    for (std::size_t i = 0; i < n; ++i) w[i] -= c.lr * (g[i] + c.weight_decay * w[i]);
  } else if (c.nesterov) {
    for (std::size_t i = 0; i < n; ++i) {
      float d = g[i] + c.weight_decay * w[i];
      m[i] = c.momentum * m[i] + d;
      w[i] -= c.lr * (d + c.momentum * m[i]);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = c.momentum * m[i] + (g[i] + c.weight_decay * w[i]);
      w[i] -= c.lr * m[i];
    }
  }
}

TRIREME_CLONES
void adam(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n,
          const Adam& constants) {
  const Adam c = constants;
  for (std::size_t i = 0; i < n; ++i) {
    float d = g[i] + c.weight_decay * w[i];
    m[i] = m[i] * c.beta1 + d * c.rest1;
    v[i] = v[i] * c.beta2 + d * d * c.rest2;
    w[i] = w[i] * c.keep - c.step * m[i] / (std::sqrt(v[i]) / c.root_correction + c.epsilon);
  }
}

// In blocks that stay in the first cache, so that each loop is one over dense memory.
void sgd_round(const Round& r, const Sgd& c) {
  constexpr std::size_t kBlock = 512;
  alignas(64) float sum[kBlock];
  for (std::size_t begin = 0; begin < r.n; begin += kBlock) {
    const std::size_t n = std::min(kBlock, r.n - begin);
    if (r.parts > 1) add(sum, r.gradients[0] + begin, r.gradients[1] + begin, n);
    for (std::size_t part = 2; part < r.parts; ++part) add_to(sum, r.gradients[part] + begin, n);
    float* const w = r.w + begin;
    sgd(w, r.parts > 1 ? sum : r.gradients[0] + begin, r.m ? r.m + begin : nullptr, n, c);
    for (std::size_t copy = 0; copy < r.copied; ++copy) {
      if (r.past_caches) {
        stream(r.copies[copy] + begin, w, n);
      } else {
        std::memcpy(r.copies[copy] + begin, w, n * sizeof(float));
      }
    }
  }
}

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

#include "trireme/ps/kernels.h"

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

TRIREME_CLONES
void add(float* __restrict into, const float* __restrict a, const float* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] = a[i] + b[i];
}

TRIREME_CLONES
void add_to(float* __restrict into, const float* __restrict b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += b[i];
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

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

namespace {

// Sixteen elements, in as many registers as the processor needs for them.
typedef float Line __attribute__((vector_size(64), aligned(64)));
constexpr std::size_t kLine = 16;

inline __attribute__((always_inline)) void load(Line& line, const float* from) {
  __builtin_memcpy(&line, from, sizeof line);
}
inline __attribute__((always_inline)) void store(const Line& line, float* into, [[maybe_unused]] bool past_caches) {
#ifdef __SSE2__
  if (past_caches) {
    __m128 quarters[4];
    __builtin_memcpy(quarters, &line, sizeof line);
    for (std::size_t i = 0; i < 4; ++i) _mm_stream_ps(into + 4 * i, quarters[i]);
    return;
  }
#endif
  __builtin_memcpy(into, &line, sizeof line);
}

}  // namespace

// The same operations in the same order as add, add_to and sgd: the same bits.
TRIREME_CLONES
void sgd_round(const Round& given, const Sgd& constants) {
  const Round r = given;
  const Sgd c = constants;
  std::size_t i = 0;
  for (; i + kLine <= r.n; i += kLine) {
    Line g, next, w;
    load(g, r.gradients[0] + i);
    for (std::size_t part = 1; part < r.parts; ++part) {
      load(next, r.gradients[part] + i);
      g = g + next;
    }
    load(w, r.w + i);
    Line d = g + c.weight_decay * w;
    if (r.m) {
      Line m;
      load(m, r.m + i);
      m = c.momentum * m + d;
      store(m, r.m + i, false);
      d = c.nesterov ? d + c.momentum * m : m;
    }
    w = w - c.lr * d;
    store(w, r.w + i, false);
    for (std::size_t copy = 0; copy < r.copied; ++copy) store(w, r.copies[copy] + i, r.past_caches);
  }
  for (; i < r.n; ++i) {
    float g = r.gradients[0][i];
    for (std::size_t part = 1; part < r.parts; ++part) g += r.gradients[part][i];
    sgd(r.w + i, &g, r.m ? r.m + i : nullptr, 1, c);
    for (std::size_t copy = 0; copy < r.copied; ++copy) r.copies[copy][i] = r.w[i];
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

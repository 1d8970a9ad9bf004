#include "trireme/train/optimizers/kernels.h"

#include <array>
#include <cmath>

// Each loop is compiled for several vector widths; the loader picks. Sanitizers do not survive that.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TRIREME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TRIREME_CLONES
#endif

namespace trireme::train::kernels {
namespace {

// A sum of many terms in sixteen parts that a vector unit adds side by side, at any width.
struct Lanes {
  static constexpr std::size_t kCount = 16;
  std::array<double, kCount> sums{};

  double total() const { return tree_sum(sums); }
};

inline float lamb_update(float p, float m, float v, const Lamb& c) {
  return m * c.mean_correction / (std::sqrt(v) * c.root_correction + c.epsilon) + c.weight_decay * p;
}

template <class Float>
inline double square(const Float* __restrict x, std::size_t n) {
  Lanes lanes;
  std::size_t i = 0;
  for (; i + Lanes::kCount <= n; i += Lanes::kCount) {
    for (std::size_t lane = 0; lane < Lanes::kCount; ++lane) {
      double value = static_cast<double>(x[i + lane]);
      lanes.sums[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane)
    lanes.sums[lane] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return lanes.total();
}

}  // namespace

double tree_sum(std::span<const double> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  std::size_t half = (terms.size() + 1) / 2;
  return tree_sum(terms.first(half)) + tree_sum(terms.subspan(half));
}

TRIREME_CLONES
void sgd(float* __restrict p, const float* __restrict g, float* __restrict m, std::size_t n, const Sgd& constants) {
  const Sgd c = constants;
  if (!m) {
    for (std::size_t i = 0; i < n; ++i) p[i] -= c.lr * (g[i] + c.weight_decay * p[i]);
  } else if (c.nesterov) {
    for (std::size_t i = 0; i < n; ++i) {
      float d = g[i] + c.weight_decay * p[i];
      m[i] = c.momentum * m[i] + d;
      p[i] -= c.lr * (d + c.momentum * m[i]);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = c.momentum * m[i] + (g[i] + c.weight_decay * p[i]);
      p[i] -= c.lr * m[i];
    }
  }
}

TRIREME_CLONES
void adam(float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n,
          const Adam& constants) {
  const Adam c = constants;
  for (std::size_t i = 0; i < n; ++i) {
    float d = g[i] + c.weight_decay * p[i];
    m[i] = m[i] * c.beta1 + d * c.rest1;
    v[i] = v[i] * c.beta2 + d * d * c.rest2;
    p[i] = p[i] * c.keep - c.step * m[i] / (std::sqrt(v[i]) / c.root_correction + c.epsilon);
  }
}

TRIREME_CLONES
void lars(float* __restrict p, const float* __restrict g, float* __restrict m, std::size_t n, const Lars& constants) {
  const Lars c = constants;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = c.momentum * m[i] + c.rate * (g[i] + c.weight_decay * p[i]);
    p[i] -= m[i];
  }
}

TRIREME_CLONES
Squares lamb_moments(const float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v,
                     std::size_t n, const Lamb& constants) {
  const Lamb c = constants;
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = m[i] * c.beta1 + g[i] * c.rest1;
    v[i] = v[i] * c.beta2 + g[i] * g[i] * c.rest2;
  }
  Lanes update;
  std::size_t i = 0;
  for (; i + Lanes::kCount <= n; i += Lanes::kCount) {
    for (std::size_t lane = 0; lane < Lanes::kCount; ++lane) {
      double u = lamb_update(p[i + lane], m[i + lane], v[i + lane], c);
      update.sums[lane] += u * u;
    }
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    double u = lamb_update(p[i], m[i], v[i], c);
    update.sums[lane] += u * u;
  }
  return {square(p, n), update.total()};
}

TRIREME_CLONES
void lamb_apply(float* __restrict p, const float* __restrict m, const float* __restrict v, std::size_t n,
                const Lamb& constants, float rate) {
  const Lamb c = constants;
  for (std::size_t i = 0; i < n; ++i) p[i] -= rate * lamb_update(p[i], m[i], v[i], c);
}

TRIREME_CLONES
double block_square(const float* x, std::size_t n) { return square(x, n); }

double block_square(const double* x, std::size_t n) { return square(x, n); }

}  // namespace trireme::train::kernels

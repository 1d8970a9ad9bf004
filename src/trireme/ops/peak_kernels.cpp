// Fused multiplications and additions in as many chains as keep all of a core's units busy.
#include <algorithm>
#include <chrono>

#include "trireme/ops/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/peak_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the operations done; `result` keeps them from being left out.
double multiply_add_for(int times, float* result) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;
  hn::Vec<decltype(d)> sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  const auto factor = hn::Set(d, result[0]), term = hn::Set(d, result[1]);
  for (int time = 0; time < times; ++time) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], factor, term);
  }
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  result[2] = hn::GetLane(sums[0]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * times;
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(multiply_add_for);

double measure_peak(double seconds) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  float numbers[3] = {0.999f, 0.001f, 0};
  double best = 0;
  for (const double end = now() + seconds; now() < end;) {
    const double begin = now(), operations = HWY_DYNAMIC_DISPATCH(multiply_add_for)(20000, numbers);
    best = std::max(best, operations / (now() - begin));
  }
  return best;
}

}  // namespace trireme::ops
#endif

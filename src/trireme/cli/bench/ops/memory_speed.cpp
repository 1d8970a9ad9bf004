#include "trireme/cli/bench/ops/memory_speed.h"

#include <algorithm>
#include <cstring>

#include "trireme/base/clock.h"
#include "trireme/ops/aligned.h"
#include "trireme/ops/parallel.h"

namespace trireme::bench {

double measure_memory() {
  constexpr int64_t kFloats = 1 << 24, kPart = 1 << 18;
  constexpr int kTimes = 6;
  ops::AlignedFloats from(kFloats), to(kFloats);
  std::fill_n(from.data(), kFloats, 1.0f);
  double best = 1e9;
  for (int time = 0; time < kTimes; ++time) {
    const double begin = now_seconds();
    ops::parallel(kFloats / kPart, [&](int64_t part) {
      std::memcpy(to.data() + part * kPart, from.data() + part * kPart, kPart * sizeof(float));
    });
    if (time > 0) best = std::min(best, now_seconds() - begin);  // the first touches the pages
  }
  return 2 * sizeof(float) * static_cast<double>(kFloats) / best;
}

}  // namespace trireme::bench

#include "trireme/ops/conv/padded/filters.h"

#include <algorithm>
#include <array>

#include "trireme/ops/aligned.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::padded {

using internal::kBf16Line;
using internal::kBf16Strip;

static_assert(conv_kernels::kStrip == kBf16Strip, "strips of weights in f32 are turned into those of pairs");

void pack_filters(const internal::Bf16Packing& packing, const ConvShape& shape, bool turned, const im2col::Axis& down,
                  const im2col::Axis& across, const float* weight, uint32_t* to) {
  constexpr int64_t kLength = 2 * kBf16Line;  // channels of a line
  const int64_t channels = turned ? shape.out_channels : shape.in_channels;
  const int64_t filters = turned ? shape.in_channels : shape.out_channels;
  const int64_t places = shape.kernel[0] * shape.kernel[1], lines = internal::bf16_lines(channels);
  const auto used = static_cast<int64_t>(down.kernel.size() * across.kernel.size());
  parallel(internal::bf16_strips(filters) * lines, [&](int64_t part) {
    const int64_t filter = part / lines * kBf16Strip, some = std::min(kBf16Strip, filters - filter);
    const int64_t channel = part % lines * kLength, count = std::min(kLength, channels - channel);
    AlignedFloats strips(count * places * kBf16Strip);  // [channels][places][filters]
    if (turned) {
      for (int64_t c = 0; c < count; ++c) {
        conv_kernels::to_strip(weight + ((channel + c) * filters + filter) * places, places, some, places,
                               strips.data() + c * places * kBf16Strip);
      }
    } else {
      conv_kernels::to_strip(weight + (filter * channels + channel) * places, channels * places, some, count * places,
                             strips.data());
    }
    uint32_t* out = to + (part / lines * used * lines + part % lines) * kBf16Line * kBf16Strip;
    std::array<const float*, kLength> rows;
    for (const int64_t r : down.kernel) {
      for (const int64_t s : across.kernel) {
        const float* const first = strips.data() + (r * shape.kernel[1] + s) * kBf16Strip;
        for (int64_t c = 0; c < count; ++c) rows[static_cast<std::size_t>(c)] = first + c * places * kBf16Strip;
        packing.strip(rows.data(), count, 0, kBf16Strip, 1, out);
        out += lines * kBf16Line * kBf16Strip;
      }
    }
  });
}

}  // namespace trireme::ops::padded

#include "trireme/ops/conv/im2col/weights.h"

#include <algorithm>
#include <array>

#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::im2col {
namespace {

using conv_kernels::kStrip;
using conv_kernels::strips;

constexpr int64_t kChunk = 64;  // weights of a filter turned at a time

// Calls body(first filter, filters, first weight, weights) for what one strip has of one chunk of weights.
template <class Body>
void each_chunk(int64_t filters, int64_t length, const Body& body) {
  const int64_t chunks = (length + kChunk - 1) / kChunk;
  parallel(strips(filters) * chunks, [&](int64_t part) {
    const int64_t filter = part / chunks * kStrip, first = part % chunks * kChunk;
    body(filter, std::min(kStrip, filters - filter), first, std::min(kChunk, length - first));
  });
}

}  // namespace

void pack_filters(const ConvShape& shape, int64_t group, const float* weight, float* to) {
  const int64_t filters = shape.out_channels / shape.groups, channels = shape.in_channels / shape.groups;
  const int64_t places = shape.kernel[0] * shape.kernel[1], length = channels * places;
  weight += group * filters * length;
  each_chunk(filters, length, [&](int64_t filter, int64_t rows, int64_t first, int64_t count) {
    alignas(64) std::array<float, kChunk * kStrip> turned;
    conv_kernels::to_strip(weight + filter * length + first, length, rows, count, turned.data());
    float* const strip = to + filter * length;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t channel = (first + j) / places, place = (first + j) % places;
      std::copy_n(turned.data() + j * kStrip, kStrip, strip + (place * channels + channel) * kStrip);
    }
  });
}

void pack_channels(const ConvShape& shape, int64_t group, const Axis& down, const Axis& across, const float* weight,
                   float* to) {
  const int64_t filters = shape.out_channels / shape.groups, channels = shape.in_channels / shape.groups;
  const int64_t places = shape.kernel[0] * shape.kernel[1];
  const auto used = static_cast<int64_t>(down.kernel.size() * across.kernel.size());
  parallel(strips(channels) * filters, [&](int64_t part) {
    const int64_t channel = part / filters * kStrip, filter = part % filters;
    const int64_t lanes = std::min(kStrip, channels - channel);
    const float* const from = weight + ((group * filters + filter) * channels + channel) * places;
    float* strip = to + (part / filters * used * filters + filter) * kStrip;
    for (const int64_t r : down.kernel) {
      for (const int64_t s : across.kernel) {
        for (int64_t c = 0; c < kStrip; ++c) {
          strip[c] = c < lanes ? from[c * places + r * shape.kernel[1] + s] : 0.0f;
        }
        strip += filters * kStrip;
      }
    }
  });
}

void unpack_filters(const ConvShape& shape, int64_t group, const float* from, float* weight) {
  const int64_t filters = shape.out_channels / shape.groups, channels = shape.in_channels / shape.groups;
  const int64_t places = shape.kernel[0] * shape.kernel[1], length = channels * places;
  weight += group * filters * length;
  each_chunk(filters, length, [&](int64_t filter, int64_t rows, int64_t first, int64_t count) {
    alignas(64) std::array<float, kChunk * kStrip> turned;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t channel = (first + j) / places, place = (first + j) % places;
      std::copy_n(from + filter * length + (place * channels + channel) * kStrip, kStrip, turned.data() + j * kStrip);
    }
    conv_kernels::from_strip(turned.data(), length, rows, count, weight + filter * length + first);
  });
}

}  // namespace trireme::ops::im2col

// What the codecs' files promise, by name, computed in f64 from the elements alone; for tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>

namespace trireme::compress::test {

inline std::span<const float> block_of(std::span<const float> x, std::size_t i, std::size_t elements) {
  const std::size_t first = i / elements * elements;
  return x.subspan(first, std::min(elements, x.size() - first));
}
inline double largest(std::span<const float> x) {
  double most = 0;
  for (float value : x) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}
inline double mean_size(std::span<const float> x) {
  double sum = 0;
  for (float value : x) sum += std::abs(static_cast<double>(value));
  return x.empty() ? 0 : sum / static_cast<double>(x.size());
}
inline double norm(std::span<const float> x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// The most by which element i of x may change on its way through a message.
using Bound = double (*)(std::span<const float> x, std::size_t i);

inline double half_bound(double x, double unit, double tiny, double most) {
  return std::max({std::abs(x) * unit, tiny, std::abs(x) - most});
}
// Steps of `levels` to the largest of a block; `part` of a step. Blocks below what a step can be are zero.
inline double step_bound(std::span<const float> x, double levels, double part) {
  const double most = largest(x), step = most / levels;
  return std::max(step * part * (1 + 0x1p-18), step < 0x1.01p-126 ? most : 0.0);
}
inline double sent_or_left(std::span<const float> x, std::size_t i) { return std::abs(static_cast<double>(x[i])); }

inline const std::map<std::string_view, Bound>& bounds() {
  static const std::map<std::string_view, Bound> all{
      {"none", [](std::span<const float>, std::size_t) { return 0.0; }},
      {"fp16", [](std::span<const float> x, std::size_t i) { return half_bound(x[i], 0x1p-11, 0x1p-25, 65504); }},
      {"bf16", [](std::span<const float> x, std::size_t i) { return half_bound(x[i], 0x1p-8, 0x1p-134, 0x1.fep127); }},
      {"int8", [](std::span<const float> x, std::size_t i) { return step_bound(block_of(x, i, 256), 127, 0.5); }},
      {"qsgd", [](std::span<const float> x, std::size_t i) { return step_bound(block_of(x, i, 256), 7, 1); }},
      {"terngrad", [](std::span<const float> x, std::size_t i) { return step_bound(block_of(x, i, 320), 1, 1); }},
      {"sign",
       [](std::span<const float> x, std::size_t i) {
         return std::max(sent_or_left(x, i), mean_size(block_of(x, i, 256)) * (1 + 0x1p-23) + 0x1p-149);
       }},
      {"onebit",
       [](std::span<const float> x, std::size_t i) { return largest(block_of(x, i, 256)) * (1 + 0x1p-23) + 0x1p-149; }},
      {"threshold", sent_or_left},
      {"topk", sent_or_left},
      {"randk", [](std::span<const float> x, std::size_t i) { return 101 * sent_or_left(x, i); }},
      {"adaptive", sent_or_left},
      {"dgc", sent_or_left},
      {"powersgd", [](std::span<const float> x, std::size_t) { return norm(x) * 1.0001 + 1e-39; }},
  };
  return all;
}

}  // namespace trireme::compress::test

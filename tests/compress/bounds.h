// What the codecs' files promise, by name, computed in f64 from the elements alone; for tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <vector>

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

// The most by which each element of x may change on its way through a message.
using Bound = std::vector<double> (*)(std::span<const float> x);

template <typename Most>
std::vector<double> by_element(std::span<const float> x, const Most& most) {
  std::vector<double> all;
  for (float value : x) all.push_back(most(std::abs(static_cast<double>(value))));
  return all;
}
// most(block) of all elements of a block.
template <typename Most>
std::vector<double> by_block(std::span<const float> x, std::size_t elements, const Most& most) {
  std::vector<double> all;
  for (std::size_t i = 0; i < x.size(); i += elements) {
    const auto block = block_of(x, i, elements);
    all.insert(all.end(), block.size(), most(block));
  }
  return all;
}

inline std::vector<double> halves(std::span<const float> x, double unit, double tiny, double most) {
  return by_element(x, [=](double size) { return std::max({size * unit, tiny, size - most}); });
}
// Steps of `levels` to the largest of a block; `part` of a step. Blocks below what a step can be are zero.
inline std::vector<double> steps(std::span<const float> x, std::size_t elements, double levels, double part) {
  return by_block(x, elements, [=](std::span<const float> block) {
    const double most = largest(block), step = most / levels;
    return std::max(step * part * (1 + 0x1p-18), step < 0x1.01p-126 ? most : 0.0);
  });
}
// An element is sent as it is, or left.
inline std::vector<double> sent_or_left(std::span<const float> x) {
  return by_element(x, [](double size) { return size; });
}

inline const std::map<std::string_view, Bound>& bounds() {
  using X = std::span<const float>;
  static const std::map<std::string_view, Bound> all{
      {"none", [](X x) { return std::vector<double>(x.size()); }},
      {"fp16", [](X x) { return halves(x, 0x1p-11, 0x1p-25, 65504); }},
      {"bf16", [](X x) { return halves(x, 0x1p-8, 0x1p-134, 0x1.fep127); }},
      {"int8", [](X x) { return steps(x, 256, 127, 0.5); }},
      {"qsgd", [](X x) { return steps(x, 256, 7, 1); }},
      {"terngrad", [](X x) { return steps(x, 320, 1, 1); }},
      {"sign",
       [](X x) {
         auto most = by_block(x, 256, [](X block) { return mean_size(block) * (1 + 0x1p-23) + 0x1p-149; });
         for (std::size_t i = 0; i < x.size(); ++i) most[i] = std::max(most[i], std::abs(static_cast<double>(x[i])));
         return most;
       }},
      {"onebit",
       [](X x) { return by_block(x, 256, [](X block) { return largest(block) * (1 + 0x1p-23) + 0x1p-149; }); }},
      {"threshold", sent_or_left},
      {"topk", sent_or_left},
      // One of a hundred and one at most, and that so many times.
      {"randk", [](X x) { return by_element(x, [](double size) { return 101 * size; }); }},
      {"adaptive", sent_or_left},
      {"dgc", sent_or_left},
      {"powersgd", [](X x) { return std::vector<double>(x.size(), norm(x) * 1.0001 + 1e-39); }},
  };
  return all;
}

}  // namespace trireme::compress::test

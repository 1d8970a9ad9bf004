// A job whose pushes and pulls are compressed.
#pragma once
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/ps/job.h"
#include "trireme/compress/codecs.h"

namespace trireme::ps::compression_test {

// On four shards of 2,576 elements and less: two matrices over two shards each, with a bias between them.
inline const std::vector<Tensor> kTensors{{"conv.weight", 4096, 64}, {"conv.bias", 40, 40}, {"fc.weight", 6144, 96}};
inline constexpr std::size_t kCount = 4096 + 40 + 6144;
inline constexpr std::size_t kShards = 4;

inline std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> value;
  std::vector<float> numbers(n);
  for (float& number : numbers) number = value(random);
  return numbers;
}
inline std::vector<float> gradient_of(int rank, int step) {
  return noise(kCount, static_cast<unsigned>(1000 * step + rank));
}

inline JobSpec spec(std::string_view codec, const Consistency& rule, double momentum = 0) {
  return {kTensors, {"sgd", {.momentum = momentum}}, rule, {.codec = std::string(codec), .seed = 5}};
}

inline std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const auto& kind : compress::codecs()) all.push_back(kind.name);
  return all;
}

inline double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum);
}

}  // namespace trireme::ps::compression_test

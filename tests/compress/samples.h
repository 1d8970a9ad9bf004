// Tensors of all kinds of numbers, and codecs made for them, for tests that try every codec.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "trireme/compress/codecs.h"

namespace trireme::compress::test {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

inline bool may_feed_back(const CodecKind& kind) {
  return kind.error == CodecKind::Error::fed_back || kind.error == CodecKind::Error::dropped;
}

// A matrix where the count allows it.
inline Tensor tensor_of(std::size_t count) {
  std::size_t rows = 1;
  for (std::size_t r = 2; r * r <= count; ++r) rows = count % r == 0 ? r : rows;
  return {"fc.weight", count, rows, 3};
}

inline std::unique_ptr<Codec> make(const CodecKind& kind, std::size_t count, Context context = {},
                                   bool feedback = false) {
  std::string text(kind.name);
  if (may_feed_back(kind)) text += feedback ? ",ef=on" : ",ef=off";
  return Choice::parse(text).make(tensor_of(count), context);
}

inline Bytes encoded(Codec& codec, const Floats& x, float* left = nullptr) {
  Bytes message(codec.most_bytes(x.size()) + 1);  // at an odd address
  const auto bytes = codec.encode(0, x, message.data() + 1, left);
  EXPECT_LE(bytes, codec.most_bytes(x.size()));
  return {message.begin() + 1, message.begin() + 1 + static_cast<std::ptrdiff_t>(bytes)};
}

inline Floats decoded(const Codec& codec, std::span<const std::byte> message, std::size_t count) {
  Floats out(count, 77.0f);
  codec.decode(message, out);
  return out;
}

inline Floats random(std::size_t count, unsigned seed, double scale = 0.01) {
  std::mt19937 engine(seed);
  Floats x(count);
  // The sum of four even numbers: nearly normal, and the same with every library.
  for (float& value : x) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(engine()) * 0x1p-32 - 0.5;
    value = static_cast<float>(sum * scale);
  }
  return x;
}

struct Input {
  std::string name;
  Floats x;
};

inline std::vector<Input> inputs(std::size_t count) {
  constexpr float kMost = std::numeric_limits<float>::max();
  Floats huge = random(count, 2, 1e38), largest(count), spike = random(count, 4, 1e-6), signs = random(count, 5);
  for (std::size_t i = 0; i < count; ++i) largest[i] = i % 3 == 0 ? -kMost : kMost;
  if (count > 0) spike[count / 2] = 1000;
  for (std::size_t i = 0; i < count; i += 5) signs[i] = i % 2 ? -0.0f : 0.0f;
  return {{"random", random(count, 1)},
          {"zero", Floats(count, 0.0f)},
          {"constant", Floats(count, 0.3f)},
          {"constant below zero", Floats(count, -1e-3f)},
          {"denormal", random(count, 6, 1e-40)},
          {"least", Floats(count, std::numeric_limits<float>::denorm_min())},
          {"tiny", random(count, 7, 1e-36)},
          {"huge", huge},
          {"largest", largest},
          {"spike", spike},
          {"zeros among others", signs}};
}

inline constexpr std::size_t kCounts[] = {0, 1, 2, 7, 63, 64, 255, 256, 257, 319, 321, 600, 1023, 2051};

}  // namespace trireme::compress::test

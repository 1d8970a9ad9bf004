// Codecs beside plain computations of what their files say.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/compress/bounds.h"
#include "trireme/compress/codecs.h"

namespace trireme::compress::quantizers_test {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

std::unique_ptr<Codec> make(const std::string& text, std::size_t count, std::size_t rows = 1, Context context = {}) {
  return Choice::parse(text + ",ef=off").make({"w", count, rows, 1}, context);
}
Bytes encoded(Codec& codec, const Floats& x) {
  Bytes message(codec.most_bytes(x.size()));
  message.resize(codec.encode(0, x, message.data(), nullptr));
  return message;
}
Floats decoded(const Codec& codec, const Bytes& message, std::size_t count) {
  Floats out(count);
  codec.decode(message, out);
  return out;
}
float float_at(const Bytes& message, std::size_t at) {
  float value;
  std::memcpy(&value, message.data() + at, sizeof value);
  return value;
}
Floats random(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  Floats x(count);
  for (float& value : x) value = static_cast<float>(static_cast<double>(engine()) * 0x1p-32 - 0.5);
  return x;
}

TEST(Quantizers, MessagesAreAsLongAsTheFormula) {
  const auto blocks = [](std::size_t n, std::size_t block) { return (n + block - 1) / block; };
  for (std::size_t n : {0, 1, 8, 9, 255, 256, 257, 320, 321, 10007}) {
    EXPECT_EQ(make("fp16", n)->most_bytes(n), 2 * n);
    EXPECT_EQ(make("bf16", n)->most_bytes(n), 2 * n);
    EXPECT_EQ(make("int8", n)->most_bytes(n), n + 4 * blocks(n, 256));
    for (std::size_t bits = 2; bits <= 8; ++bits) {
      EXPECT_EQ(make("qsgd:" + std::to_string(bits), n)->most_bytes(n), bits * blocks(n, 8) + 4 * blocks(n, 256));
    }
    EXPECT_EQ(make("terngrad", n)->most_bytes(n), n / 320 * 64 + blocks(n % 320, 5) + 4 * blocks(n, 320));
    EXPECT_EQ(make("sign", n)->most_bytes(n), blocks(n, 8) + 4 * blocks(n, 256));
    EXPECT_EQ(make("onebit", n)->most_bytes(n), blocks(n, 8) + 8 * blocks(n, 256));
  }
  EXPECT_EQ(make("powersgd:3", 6000, 60)->most_bytes(6000), 4U + 4 * 3 * (60 + 100));
  EXPECT_EQ(make("powersgd:3", 6000, 60)->most_bytes(900), 4U + 4 * 3 * (30 + 30));
}

TEST(Quantizers, Int8IsTheNearestStep) {
  const Floats x = random(600, 1);
  auto codec = make("int8", x.size());
  const Bytes message = encoded(*codec, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t block = i / 256 * 260;
    const float step = float_at(message, block);
    EXPECT_FLOAT_EQ(step, static_cast<float>(test::largest(test::block_of(x, i, 256)) / 127));
    const auto q = static_cast<std::int8_t>(message[block + 4 + i % 256]);
    EXPECT_NEAR(q, static_cast<double>(x[i]) / step, 0.5001) << i;
    EXPECT_EQ(decoded(*codec, message, x.size())[i], static_cast<float>(q) * step);
    if (i % 100 != 0) ++i;  // every second will do
  }
}

// Every code of every width, as planes of bits.
TEST(Quantizers, QsgdPacksItsCodes) {
  for (int bits = 2; bits <= 8; ++bits) {
    const int levels = (1 << (bits - 1)) - 1;
    Floats x(300);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i) % (2 * levels + 1) - levels);
    x[0] = x[260] = static_cast<float>(levels);  // the step is 1, and whole numbers need no luck
    auto codec = make("qsgd:" + std::to_string(bits), x.size());
    const Bytes message = encoded(*codec, x);
    EXPECT_EQ(decoded(*codec, message, x.size()), x) << bits;
    const auto planes = static_cast<std::size_t>(bits);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool last = i >= 256;
      const std::size_t first = last ? 4 + planes * 32 + 4 : 4, plane = last ? 6 : 32, j = i % 256;
      int code = 0;
      for (std::size_t p = 0; p < planes; ++p) {
        code |= (static_cast<int>(message[first + p * plane + j / 8]) >> (j % 8) & 1) << p;
      }
      ASSERT_EQ(code - levels, static_cast<int>(x[i])) << bits << " " << i;
    }
  }
}

TEST(Quantizers, TernGradPacksFiveToAByte) {
  Floats x(332);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * i % 3) - 1) * 0.5f;
  auto codec = make("terngrad", x.size());
  Bytes message = encoded(*codec, x);
  EXPECT_EQ(decoded(*codec, message, x.size()), x);
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool last = i >= 320;
    const std::size_t first = last ? 72 : 4, m = last ? 3 : 64, j = i % 320;
    const int digit = static_cast<int>(message[first + j % m]) / kPowers[j / m] % 3;
    ASSERT_EQ(digit - 1, static_cast<int>(x[i] * 2)) << i;
  }
  message[40] = std::byte{243};
  Floats out(x.size());
  EXPECT_THROW(codec->decode(message, out), ProtocolError);
}

TEST(Quantizers, SignAndOnebitKeepMeans) {
  const Floats x = random(256, 3);
  double up = 0, down = 0;
  int above = 0;
  for (float value : x) (value >= 0 ? up : down) += value, above += value >= 0;
  auto sign = make("sign", 256), onebit = make("onebit", 256);
  EXPECT_FLOAT_EQ(float_at(encoded(*sign, x), 0), static_cast<float>((up - down) / 256));
  EXPECT_FLOAT_EQ(float_at(encoded(*onebit, x), 0), static_cast<float>(up / above));
  EXPECT_FLOAT_EQ(float_at(encoded(*onebit, x), 4), static_cast<float>(-down / (256 - above)));
}

TEST(Quantizers, TheMajorityDecides) {
  // Sizes 1, 2 and 4 of three workers; element i has the signs of the bits of i.
  const float sizes[] = {1, 2, 4};
  std::vector<Bytes> messages;
  auto codec = make("sign", 40);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    Floats x(40);
    for (std::size_t i = 0; i < 40; ++i) x[i] = i >> worker & 1 ? -sizes[worker] : sizes[worker];
    messages.push_back(encoded(*codec, x));
  }
  const auto vote = [&](std::vector<std::size_t> of, float factor) {
    std::vector<std::span<const std::byte>> views;
    for (std::size_t worker : of) views.emplace_back(messages[worker]);
    Floats out(40);
    codec->merge(views, factor, out);
    EXPECT_EQ(decoded(*codec, encoded(*codec, out), 40), out) << "encoded again it is the same";
    return out;
  };
  const Floats three = vote({0, 1, 2}, 1.0f / 3), two = vote({0, 2}, 0.5f), same = vote({0, 0}, 0.5f);
  for (unsigned i = 0; i < 40; ++i) {
    EXPECT_FLOAT_EQ(three[i], std::popcount(i & 7) >= 2 ? -7.0f / 3 : 7.0f / 3) << i;
    EXPECT_EQ(two[i], i & 4 ? -2.5f : 2.5f) << "of two who differ the larger wins, " << i;
    EXPECT_EQ(same[i], i & 1 ? -1.0f : 1.0f) << i;
  }
  Bytes opposite = messages[0];
  for (std::size_t i = 4; i < opposite.size(); ++i) opposite[i] = ~opposite[i];
  messages.push_back(opposite);
  messages.push_back(encoded(*codec, Floats(40, 0.0f)));
  EXPECT_THAT(vote({0, 3}, 0.5f), testing::ElementsAreArray(vote({0, 3}, 0.5f)));
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(vote({0, 3}, 0.5f)[i], i % 2 ? -1.0f : 1.0f) << "lots";
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(vote({0, 4, 4, 4}, 1)[i], i % 2 ? -1.0f : 1.0f) << "zeros do not vote";
}

TEST(Quantizers, HalvesEndAtTheLargestOne) {
  const Floats x{65504, 1e6, -1e9, 65519, 6e-5f, 2e-8f, -1e-7f, 0.1f};
  auto codec = make("fp16", x.size());
  EXPECT_THAT(decoded(*codec, encoded(*codec, x), x.size()),
              testing::ElementsAre(65504, 65504, -65504, 65504, testing::FloatNear(6e-5f, 3e-8f), 0,
                                   testing::FloatEq(-0x1p-23f), testing::FloatNear(0.1f, 5e-5f)));
}

Floats product(std::size_t rows, std::size_t cols, std::size_t rank, unsigned seed) {
  const Floats a = random(rows * rank, seed), b = random(cols * rank, seed + 1);
  Floats m(rows * cols);
  for (std::size_t i = 0; i < m.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < rank; ++k) sum += static_cast<double>(a[i / cols * rank + k]) * b[i % cols * rank + k];
    m[i] = static_cast<float>(sum);
  }
  return m;
}

TEST(Quantizers, PowerSgdIsExactOnLowRanks) {
  for (auto [rows, cols] : {std::pair<std::size_t, std::size_t>{33, 47}, {64, 9}, {20, 160}}) {
    for (std::size_t rank : {1, 2, 4}) {
      const Floats x = product(rows, cols, rank, 5);
      auto codec = make("powersgd:4", x.size(), rows);
      const Floats out = decoded(*codec, encoded(*codec, x), x.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(out[i], x[i], 1e-5 * test::largest(x)) << rows << " " << rank;
    }
  }
}

TEST(Quantizers, PowerSgdFindsTheLargestPartStepByStep) {
  // A matrix of rank 2 and a little noise: with rank 2, the noise alone is left after some steps.
  Floats x = product(40, 50, 2, 7);
  const Floats noise = random(x.size(), 9);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.01f * noise[i];
  auto codec = make("powersgd:2", x.size(), 40);
  Floats left(x.size());
  Bytes message(codec->most_bytes(x.size()));
  for (int step = 0; step < 3; ++step) codec->encode(0, x, message.data(), left.data());
  EXPECT_LT(test::norm(left), 1.01 * 0.01 * test::norm(noise));
}

TEST(Quantizers, PowerSgdIsNotStuckAtZero) {
  auto codec = make("powersgd", 400, 20);
  encoded(*codec, Floats(400, 0.0f));
  const Floats x = product(20, 20, 2, 3);
  const Floats out = decoded(*codec, encoded(*codec, x), 400);
  for (std::size_t i = 0; i < 400; ++i) ASSERT_NEAR(out[i], x[i], 1e-5);
}

}  // namespace
}  // namespace trireme::compress::quantizers_test

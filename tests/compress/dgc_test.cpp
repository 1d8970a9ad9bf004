// Deep gradient compression against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "trireme/compress/codecs.h"
#include "trireme/compress/selection.h"

namespace trireme::compress::dgc_test {
namespace {

using Floats = std::vector<float>;

std::unique_ptr<Codec> made(const char* text, std::size_t count, double momentum, std::int64_t steps_per_epoch = 1) {
  return Choice::parse(text).make({"t", count, 1, 0}, {.steps_per_epoch = steps_per_epoch, .momentum = momentum});
}

Floats drawn(std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Floats x(count);
  for (float& value : x) value = normal(random);
  return x;
}

Floats sent(Codec& codec, const Floats& x) {
  std::vector<std::byte> message(codec.most_bytes(x.size()));
  message.resize(codec.encode(0, x, message.data(), nullptr));
  Floats out(x.size());
  codec.decode(message, out);
  return out;
}

std::size_t nonzero(const Floats& x) {
  return static_cast<std::size_t>(std::ranges::count_if(x, [](float value) { return value != 0; }));
}

// Algorithm 1 and 2 of the paper, without clipping and warm-up.
struct Plain {
  Plain(std::size_t count, float momentum) : m(momentum), u(count), v(count) {}
  Floats step(const Floats& g, std::size_t k) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      u[i] = m * u[i] + g[i];
      v[i] += u[i];
    }
    std::vector<std::size_t> order(g.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return std::abs(v[a]) > std::abs(v[b]); });
    Floats out(g.size());
    for (std::size_t i = 0; i < k; ++i) {
      out[order[i]] = v[order[i]];
      u[order[i]] = v[order[i]] = 0;
    }
    return out;
  }
  float m;
  Floats u, v;
};

TEST(Dgc, DoesWhatThePaperSays) {
  for (const std::size_t count : {1, 17, 1000, 10001}) {
    std::mt19937_64 random(1);
    const auto codec = made("dgc:0.05,warmup=0,clip=0,masking=on", count, 0.9);
    Plain plain(count, 0.9f);
    for (int step = 0; step < 12; ++step) {
      const Floats g = drawn(count, random);
      EXPECT_EQ(sent(*codec, g), plain.step(g, part_of(count, 0.05))) << count << ' ' << step;
      EXPECT_TRUE(std::ranges::equal(codec->carried(), plain.v));
    }
  }
}

TEST(Dgc, WithoutMaskingAllOfItIsMomentum) {
  std::mt19937_64 random(2);
  const auto codec = made("dgc:1,warmup=0,clip=0,masking=off", 100, 0.9);
  Floats velocity(100);
  for (int step = 0; step < 10; ++step) {
    const Floats g = drawn(100, random);
    for (std::size_t i = 0; i < 100; ++i) velocity[i] = 0.9f * velocity[i] + g[i];
    EXPECT_EQ(sent(*codec, g), velocity);
  }
}

TEST(Dgc, MaskingEndsMomentumWhereSent) {
  const auto codec = made("dgc:1,warmup=0,clip=0,masking=on", 10, 0.9);
  const Floats g(10, 2.0f);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(sent(*codec, g), g);
}

TEST(Dgc, WarmsUp) {
  std::mt19937_64 random(3);
  constexpr std::size_t kCount = 10000;
  const auto codec = made("dgc:0.01,warmup=2,clip=0", kCount, 0.5, 10);
  for (int step = 0; step < 25; ++step) {
    const double fraction = step >= 20 ? 0.01 : 0.25 * std::pow(0.04, step / 20.0);
    EXPECT_EQ(nonzero(sent(*codec, drawn(kCount, random))), part_of(kCount, fraction)) << step;
  }
}

TEST(Dgc, PiecesOfATensorAreOneStep) {
  std::mt19937_64 random(4);
  const Floats g = drawn(3000, random);
  const auto whole = made("dgc:0.01,clip=0", 3000, 0.9, 3), parts = made("dgc:0.01,clip=0", 3000, 0.9, 3);
  std::vector<std::byte> message(whole->most_bytes(3000));
  for (int step = 0; step < 5; ++step) {
    const std::size_t all = nonzero(sent(*whole, g));
    std::size_t sum = 0;
    for (const std::size_t offset : {0, 1000, 2000}) {
      Floats out(1000);
      const auto bytes = parts->encode(offset, std::span(g).subspan(offset, 1000), message.data(), nullptr);
      parts->decode(std::span(message).first(bytes), out);
      sum += nonzero(out);
    }
    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(all), 3);
  }
}

TEST(Dgc, ClipsAgainstItsOwnPast) {
  std::mt19937_64 random(5);
  const auto codec = made("dgc:1,warmup=0,clip=4", 1000, 0);
  for (int step = 0; step < 5; ++step) {
    Floats g(1000, 1.0f);
    EXPECT_EQ(sent(*codec, g), g);
  }
  EXPECT_EQ(sent(*codec, Floats(1000, 1000.0f)), Floats(1000, 4.0f));
  EXPECT_EQ(sent(*codec, Floats(1000, 2.0f)), Floats(1000, 2.0f));
}

TEST(Dgc, NothingIsLost) {
  std::mt19937_64 random(6);
  const auto codec = made("dgc:0.1,clip=0", 500, 0, 4);
  std::vector<double> given(500), received(500);
  for (int step = 0; step < 20; ++step) {
    const Floats g = drawn(500, random), out = sent(*codec, g);
    for (std::size_t i = 0; i < 500; ++i) {
      given[i] += g[i];
      received[i] += out[i];
    }
  }
  for (std::size_t i = 0; i < 500; ++i) EXPECT_NEAR(received[i] + codec->carried()[i], given[i], 1e-5);
}

TEST(Dgc, StaysFiniteAndRefusesWhatIsNot) {
  const auto codec = made("dgc:0.1,warmup=0", 100, 0.9);
  Floats g(100, 3e38f);
  for (int step = 0; step < 5; ++step) {
    for (const float value : sent(*codec, g)) EXPECT_TRUE(std::isfinite(value));
  }
  const Floats before(codec->carried().begin(), codec->carried().end());
  g[41] = NAN;
  EXPECT_THROW(sent(*codec, g), NotFinite);
  EXPECT_TRUE(std::ranges::equal(codec->carried(), before));
}

}  // namespace
}  // namespace trireme::compress::dgc_test

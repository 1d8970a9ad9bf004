// A threshold that follows: how many it sends, and how soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "trireme/compress/codecs.h"
#include "trireme/compress/selection.h"
#include "trireme/compress/sparse_message.h"

namespace trireme::compress {
namespace {

using Floats = std::vector<float>;

// What a codec sends of gradients, step by step.
class Steps {
 public:
  Steps(const char* text, std::size_t count) : codec_(Choice::parse(text).make({"t", count, 1, 0}, {})) {}

  std::size_t sent(const Floats& x) {
    std::vector<std::byte> message(codec_->most_bytes(x.size()));
    message.resize(codec_->encode(0, x, message.data(), nullptr));
    std::size_t count = 0;
    sparse::visit(message, x.size(), [&](std::size_t, float value) { count += value != 0; });
    EXPECT_EQ(message.size(), sparse::message_bytes(x.size(), count));
    return count;
  }

 private:
  std::unique_ptr<Codec> codec_;
};

Floats drawn(std::size_t count, float scale, bool heavy, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Floats x(count);
  for (float& value : x) value = scale * normal(random) * (heavy ? std::exp(normal(random)) : 1);
  return x;
}

TEST(Adaptive, SendsTheFractionWhileGradientsAreAlike) {
  for (const char* text : {"adaptive,ef=off", "adaptive:0.1,ef=off"}) {
    for (const bool heavy : {false, true}) {
      std::mt19937_64 random(1);
      constexpr std::size_t kCount = 20000;
      const auto k = static_cast<double>(part_of(kCount, Choice::parse(text).values.number("fraction")));
      Steps steps(text, kCount);
      double sum = 0;
      for (int step = 0; step < 40; ++step) {
        const auto sent = static_cast<double>(steps.sent(drawn(kCount, 0.01f, heavy, random)));
        EXPECT_GT(sent, k / 2) << text << ' ' << step;
        EXPECT_LT(sent, 2 * k) << text << ' ' << step;
        sum += sent;
      }
      EXPECT_NEAR(sum / 40, k, 0.1 * k) << text;
    }
  }
}

TEST(Adaptive, FollowsASlowChange) {
  std::mt19937_64 random(2);
  Steps steps("adaptive,ef=off", 20000);
  float scale = 1;
  for (int step = 0; step < 60; ++step, scale *= 0.95f) {
    const auto sent = steps.sent(drawn(20000, scale, false, random));
    EXPECT_GE(sent, 60u) << step;
    EXPECT_LE(sent, 400u) << step;
  }
}

TEST(Adaptive, IsBoundedWhenGradientsJump) {
  std::mt19937_64 random(3);
  Steps steps("adaptive,ef=off", 20000);
  for (const float scale : {1.0f, 100.0f, 1e-6f, 1e-42f, 1e30f, 1.0f, 0.0f, 1.0f}) {
    const auto sent = steps.sent(drawn(20000, scale, false, random));
    if (scale == 0) {
      EXPECT_EQ(sent, 0u);
    } else {
      EXPECT_GE(sent, 50u) << scale;
      EXPECT_LE(sent, 800u) << scale;
    }
  }
  for (int step = 0; step < 5; ++step) EXPECT_LE(steps.sent(Floats(20000, 0.25f)), 800u);
}

TEST(Adaptive, SettlesWithErrorFeedback) {
  std::mt19937_64 random(4);
  constexpr std::size_t kCount = 10000;
  Steps steps("adaptive", kCount);
  const Floats mean = drawn(kCount, 0.01f, true, random);
  std::size_t sum = 0;
  for (int step = 0; step < 300; ++step) {
    Floats x = drawn(kCount, 0.02f, false, random);
    for (std::size_t i = 0; i < kCount; ++i) x[i] += mean[i];
    const std::size_t sent = steps.sent(x);
    EXPECT_LE(sent, 400u);
    if (step >= 100) sum += sent;
  }
  EXPECT_NEAR(static_cast<double>(sum) / 200, 100, 15);
}

TEST(Adaptive, ABadElementChangesNothing) {
  std::mt19937_64 random(5);
  Steps steps("adaptive,ef=off", 5000), others("adaptive,ef=off", 5000);
  for (int step = 0; step < 4; ++step) {
    const Floats x = drawn(5000, 1, false, random);
    Floats bad = drawn(5000, 50, false, random);
    bad[4999] = NAN;
    bad[77] = INFINITY;
    try {
      steps.sent(bad);
      ADD_FAILURE();
    } catch (const NotFinite& error) {
      EXPECT_EQ(error.element(), 77u);
    }
    EXPECT_EQ(steps.sent(x), others.sent(x));
  }
}

}  // namespace
}  // namespace trireme::compress

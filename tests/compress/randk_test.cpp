// Elements drawn at random, from the same seed everywhere.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "trireme/compress/codecs.h"
#include "trireme/compress/draws.h"

namespace trireme::compress::randk_test {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

std::unique_ptr<Codec> made(const char* text, std::size_t count, int rank = 0, int number = 3) {
  return Choice::parse(text).make({"t", count, 1, number}, {.seed = 7, .rank = rank, .workers = 2});
}

Floats counted(std::size_t count, float first = 1) {
  Floats x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

Bytes encoded(Codec& codec, const Floats& x) {
  Bytes message(codec.most_bytes(x.size()));
  EXPECT_EQ(codec.encode(0, x, message.data(), nullptr), message.size());
  return message;
}

TEST(RandK, DrawsOneOfEachStratum) {
  for (const std::size_t n : {1, 2, 10, 17, 1000}) {
    for (const std::size_t k : {std::size_t{1}, n / 3 + 1, n}) {
      const Strata strata(n, k);
      std::size_t at = 0;
      for (std::size_t i = 0; i < k; ++i) {
        EXPECT_EQ(strata.start(i), at);
        const std::size_t drawn = strata.draw(99, i);
        EXPECT_GE(drawn, at);
        at += strata.width(i);
        EXPECT_LT(drawn, at);
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST(RandK, WorkersAddUpTheSameElements) {
  const std::size_t count = 1003;
  const auto a = made("randk:0.1,ef=off", count, 0), b = made("randk:0.1,ef=off", count, 1);
  ASSERT_EQ(a->aggregation(), Aggregation::sum);
  ASSERT_EQ(a->terms(0), 101u);
  std::set<std::size_t> seen;
  for (int step = 0; step < 5; ++step) {
    const Floats x = counted(count), y = counted(count, 5000);
    Floats of_a(101), of_b(101), out(count, 9);
    a->give(0, x, reinterpret_cast<std::byte*>(of_a.data()));
    b->give(0, y, reinterpret_cast<std::byte*>(of_b.data()));
    Floats means(101);
    for (std::size_t i = 0; i < 101; ++i) means[i] = (of_a[i] + of_b[i]) / 2;
    a->take(0, reinterpret_cast<const std::byte*>(means.data()), out);
    std::size_t sent = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i] == 0) continue;
      ++sent;
      seen.insert(i);
      const float width = std::round(out[i] / ((x[i] + y[i]) / 2));
      EXPECT_TRUE(width == 9 || width == 10) << i;
      EXPECT_FLOAT_EQ(out[i], width * (x[i] + y[i]) / 2);
    }
    EXPECT_EQ(sent, 101u);
  }
  EXPECT_GT(seen.size(), 300u);  // others each time
}

TEST(RandK, FeedsBackWhatItDidNotSend) {
  const std::size_t count = 50;
  const auto codec = made("randk:0.2", count);
  Floats total(count), x = counted(count);
  for (int step = 1; step <= 20; ++step) {
    Floats terms(codec->terms(0)), out(count);
    codec->give(0, x, reinterpret_cast<std::byte*>(terms.data()));
    codec->take(0, reinterpret_cast<const std::byte*>(terms.data()), out);
    for (std::size_t i = 0; i < count; ++i) {
      total[i] += out[i];
      EXPECT_EQ(total[i] + codec->carried()[i], static_cast<float>(step) * x[i]);
    }
  }
}

TEST(RandK, MessagesSayThemselvesWhatWasDrawn) {
  const std::size_t count = 100;
  const auto codec = made("randk:0.05", count), server = made("randk:0.05", count, 0, 8);
  Floats sum(count), x = counted(count);
  for (int step = 0; step < 10; ++step) {
    const Bytes message = encoded(*codec, x);
    EXPECT_EQ(message.size(), 8u + 4 * 5);
    server->add(message, 1, sum);
  }
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sum[i] + codec->carried()[i], 10 * x[i]);
}

TEST(RandK, IsRightOnAverage) {
  const Floats x = counted(23, -7);
  const auto codec = made("randk:0.2,ef=off", x.size());
  std::vector<double> sum(x.size());
  Floats out(x.size()), left(x.size());
  constexpr int kDraws = 20000;
  Bytes message(codec->most_bytes(x.size()));
  for (int draw = 0; draw < kDraws; ++draw) {
    codec->encode(0, x, message.data(), left.data());
    codec->decode(message, out);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum[i] += out[i];
      ASSERT_EQ(left[i], x[i] - out[i]);
    }
  }
  // An element is sent in one of w draws, as w·x: a standard deviation of |x|·√(w − 1) a draw.
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(sum[i] / kDraws, x[i], 5 * std::abs(x[i]) * 2 / std::sqrt(kDraws)) << i;
  }
}

TEST(RandK, StaysFinite) {
  const Floats x(100, -3e38f);
  const auto codec = made("randk:0.1,ef=off", x.size());
  Floats out(x.size());
  codec->decode(encoded(*codec, x), out);
  for (const float value : out) EXPECT_TRUE(std::isfinite(value));
}

TEST(RandK, RefusesOtherLengths) {
  const auto codec = made("randk", 100);
  const Bytes message = encoded(*codec, counted(100));
  Floats out(100), more(111);
  for (std::size_t length = 0; length < message.size(); ++length) {
    EXPECT_THROW(codec->decode(std::span(message).first(length), out), ProtocolError);
  }
  EXPECT_THROW(codec->add(message, 1, more), ProtocolError);
}

TEST(RandK, ABadElementDrawsNothing) {
  const auto codec = made("randk,ef=off", 50), other = made("randk,ef=off", 50);
  Floats x = counted(50);
  x[13] = INFINITY;
  Bytes message(codec->most_bytes(50));
  EXPECT_THROW(codec->encode(0, x, message.data(), nullptr), NotFinite);
  EXPECT_THROW(codec->give(0, x, message.data()), NotFinite);
  x[13] = 1;
  EXPECT_EQ(encoded(*codec, x), encoded(*other, x));
}

}  // namespace
}  // namespace trireme::compress::randk_test

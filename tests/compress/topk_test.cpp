// The sparse codecs that select by magnitude, against a plain sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "trireme/compress/codecs.h"
#include "trireme/compress/selection.h"
#include "trireme/compress/sparse_message.h"

namespace trireme::compress::topk_test {
namespace {

using Floats = std::vector<float>;

// x with all but the k largest set to zero; of equal ones the first stay.
Floats largest(const Floats& x, std::size_t k) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return std::abs(x[a]) > std::abs(x[b]); });
  Floats kept(x.size());
  for (std::size_t i = 0; i < k; ++i) kept[order[i]] = x[order[i]];
  return kept;
}

struct Sent {
  Floats values, left;
  std::size_t bytes, count;
};

Sent sent(Codec& codec, const Floats& x) {
  std::vector<std::byte> message(codec.most_bytes(x.size()));
  Sent result{Floats(x.size(), 9), Floats(x.size(), 9), 0, 0};
  result.bytes = codec.encode(0, x, message.data(), result.left.data());
  EXPECT_LE(result.bytes, message.size());
  message.resize(result.bytes);
  codec.decode(message, result.values);
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.count += result.values[i] != 0;
    EXPECT_EQ(result.left[i], result.values[i] == 0 ? x[i] : 0) << i;
  }
  return result;
}

std::unique_ptr<Codec> made(const char* text, std::size_t count) {
  return Choice::parse(text).make({"t", count, 1, 0}, {});
}

enum class Data { normal, heavy, few_values, constant, mostly_zero, rows, denormal, huge };

Floats data(Data kind, std::size_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Floats x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float z = normal(random);
    switch (kind) {
      case Data::normal:
        x[i] = z;
        break;
      case Data::heavy:
        x[i] = z * std::exp(3 * normal(random));
        break;
      case Data::few_values:
        x[i] = std::round(z);
        break;
      case Data::constant:
        x[i] = i % 2 == 0 ? 0.5f : -0.5f;
        break;
      case Data::mostly_zero:
        x[i] = i % 997 == 3 ? z : (i % 2 == 0 ? 0.0f : -0.0f);
        break;
      case Data::rows:
        x[i] = i % 512 == 7 ? 100 * z : z;
        break;
      case Data::denormal:
        x[i] = z * 1e-40f;
        break;
      case Data::huge:
        x[i] = z > 0 ? std::numeric_limits<float>::max() : -3e38f;
        break;
    }
  }
  return x;
}

constexpr Data kAllData[] = {Data::normal,      Data::heavy, Data::few_values, Data::constant,
                             Data::mostly_zero, Data::rows,  Data::denormal,   Data::huge};

TEST(TopK, SendsWhatASortWouldChoose) {
  for (const Data kind : kAllData) {
    for (const std::size_t count : {0, 1, 2, 15, 17, 1000, 4097, 8193, 30011}) {
      for (const char* text : {"topk:0.01,ef=off", "topk:0.5,ef=off", "topk:1,ef=off"}) {
        const Floats x = data(kind, count);
        const auto k = part_of(count, Choice::parse(text).values.number("fraction"));
        const auto result = sent(*made(text, count), x);
        EXPECT_EQ(result.values, largest(x, k)) << text << ' ' << count << ' ' << static_cast<int>(kind);
        EXPECT_EQ(result.bytes, sparse::message_bytes(count, result.count));
      }
    }
  }
}

TEST(TopK, SampledSendsAboutAsMany) {
  for (const Data kind : kAllData) {
    for (const std::size_t count : {1, 1000, 8193, 100003}) {
      const Floats x = data(kind, count);
      const std::size_t k = part_of(count, 0.01);
      const std::size_t nonzero = static_cast<std::size_t>(std::ranges::count_if(x, [](float v) { return v != 0; }));
      const auto codec = made("topk:0.01,sampled=on,ef=off", count);
      const auto result = sent(*codec, x);
      EXPECT_LE(result.count, 2 * k) << static_cast<int>(kind) << ' ' << count;
      EXPECT_GE(result.count, std::min(nonzero, (k + 1) / 2)) << static_cast<int>(kind) << ' ' << count;
      // None that is left is larger than one that was sent.
      float least = std::numeric_limits<float>::max(), most = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (result.values[i] != 0) least = std::min(least, std::abs(x[i]));
        most = std::max(most, std::abs(result.left[i]));
      }
      EXPECT_LE(most, least);
    }
  }
}

TEST(TopK, ThresholdSendsWhatIsAsLarge) {
  for (const Data kind : kAllData) {
    for (const std::size_t count : {0, 1, 33, 5000}) {
      const Floats x = data(kind, count);
      const auto result = sent(*made("threshold:0.5,ef=off", count), x);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(result.values[i], std::abs(x[i]) >= 0.5f ? x[i] : 0);
      EXPECT_EQ(result.bytes, sparse::message_bytes(count, result.count));
    }
  }
}

TEST(TopK, NamesTheFirstThatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const char* text : {"topk:0.01,ef=off", "topk:1,ef=off", "topk:0.01,sampled=on,ef=off", "threshold,ef=off"}) {
    for (const std::size_t bad : {0, 4095, 19999}) {
      Floats x = data(Data::few_values, 20000);
      x[bad] = -infinity;
      x[19999] = nan;
      const auto codec = made(text, x.size());
      std::vector<std::byte> message(codec->most_bytes(x.size()));
      const Floats before = x;
      try {
        codec->encode(0, x, message.data(), x.data());
        ADD_FAILURE() << text << " took it";
      } catch (const NotFinite& error) {
        EXPECT_EQ(error.element(), bad) << text;
      }
      EXPECT_TRUE(std::equal(x.begin(), x.end() - 1, before.begin())) << text;
    }
  }
}

TEST(TopK, LeavesInPlace) {
  const Floats x = data(Data::normal, 10000);
  const auto codec = made("topk:0.1,ef=off", x.size());
  Floats in_place = x;
  std::vector<std::byte> message(codec->most_bytes(x.size()));
  codec->encode(0, in_place, message.data(), in_place.data());
  EXPECT_EQ(in_place, sent(*made("topk:0.1,ef=off", x.size()), x).left);
}

TEST(TopK, FindsTheKth) {
  // Few, some of which share their first digit, and more of these than are compared with each other.
  for (const std::size_t count : {1, 512, 513, 3000, 40000}) {
    for (const Data kind : kAllData) {
      const Floats x = data(kind, count);
      Floats sorted(x);
      std::ranges::transform(sorted, sorted.begin(), [](float v) { return std::abs(v); });
      std::ranges::sort(sorted, std::greater());
      for (const std::size_t k : {std::size_t{1}, (count + 99) / 100, (count + 1) / 2, count}) {
        const Kth kth = kth_largest(x, k);
        EXPECT_EQ(kth.magnitude, magnitude(sorted[k - 1]));
        const auto above = std::ranges::count_if(sorted, [&](float v) { return v > sorted[k - 1]; });
        EXPECT_EQ(kth.ties, k - static_cast<std::size_t>(above));
      }
    }
  }
}

}  // namespace
}  // namespace trireme::compress::topk_test

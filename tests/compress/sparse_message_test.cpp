// Sparse messages: what is written is read, in as many bytes as the formula says; what is broken is refused.
#include "trireme/compress/sparse_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace trireme::compress::sparse {
namespace {

using Elements = std::map<std::uint64_t, float>;
using Bytes = std::vector<std::byte>;

// The formula of the header, in its words.
std::size_t formula(double n, double s) {
  if (s == 0) return 8;
  const double l = std::floor(std::log2(std::floor(n / s)));
  const double list = std::ceil((s + std::floor((n - 1) / std::exp2(l))) / 8) + std::ceil(s * l / 8);
  return static_cast<std::size_t>(8 + std::min(4 * n, 4 * s + std::min(std::ceil(n / 8), list)));
}

Bytes written(std::size_t count, const Elements& elements) {
  std::vector<std::uint64_t> positions;
  std::vector<float> values;
  for (const auto& [position, value] : elements) {
    positions.push_back(position);
    values.push_back(value);
  }
  // Behind the message nothing is written.
  const std::size_t bytes = message_bytes(count, elements.size());
  Bytes message(bytes + 9, std::byte{0xa5});
  EXPECT_EQ(write(count, positions, values, message.data() + 1), bytes);
  for (std::size_t i = bytes + 1; i < message.size(); ++i) EXPECT_EQ(message[i], std::byte{0xa5});
  return {message.begin() + 1, message.begin() + 1 + static_cast<std::ptrdiff_t>(bytes)};
}

Elements read(const Bytes& message, std::size_t count) {
  Elements elements;
  visit(message, count, [&](std::size_t position, float value) {
    if (value != 0) elements[position] = value;
  });
  return elements;
}

Elements drawn(std::size_t count, std::size_t sent, std::mt19937_64& random) {
  Elements elements;
  while (elements.size() < sent) elements[random() % count] = static_cast<float>(1 + random() % 1000);
  return elements;
}

TEST(SparseMessage, SaysWhatWasWrittenInTheBytesOfTheFormula) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000}) {
    for (std::size_t sent = 0; sent <= count; sent += 1 + sent / 16) {
      const Elements elements = drawn(count, sent, random);
      const Bytes message = written(count, elements);
      EXPECT_EQ(message.size(), formula(static_cast<double>(count), static_cast<double>(sent))) << count << ' ' << sent;
      EXPECT_LE(message.size(), 4 * count + 8);
      EXPECT_EQ(read(message, count), elements) << count << ' ' << sent;
      std::vector<float> out(count, 7), sum(count, 1);
      decode(message, out);
      add(message, 2, sum);
      for (std::size_t i = 0; i < count; ++i) {
        const float value = elements.contains(i) ? elements.at(i) : 0;
        EXPECT_EQ(out[i], value);
        EXPECT_EQ(sum[i], 1 + 2 * value);
      }
    }
  }
}

TEST(SparseMessage, ChoosesTheSmallestMode) {
  std::mt19937_64 random(2);
  const auto mode = [&](std::size_t sent) { return static_cast<Mode>(written(4096, drawn(4096, sent, random))[0]); };
  EXPECT_EQ(mode(0), Mode::listed);
  EXPECT_EQ(mode(41), Mode::listed);
  EXPECT_EQ(mode(1000), Mode::listed);
  EXPECT_EQ(mode(1100), Mode::bitmap);
  EXPECT_EQ(mode(3900), Mode::bitmap);
  EXPECT_EQ(mode(3968), Mode::dense);
  EXPECT_EQ(mode(4096), Mode::dense);
}

TEST(SparseMessage, BytesGrowWithWhatIsSent) {
  for (const std::size_t count : {1, 5, 64, 100, 1023, 4096, 10007}) {
    for (std::size_t sent = 0; sent < count; ++sent) {
      EXPECT_LE(message_bytes(count, sent), message_bytes(count, sent + 1)) << count << ' ' << sent;
    }
  }
}

TEST(SparseMessage, ReachesAsFarAsPiecesGo) {
  std::mt19937_64 random(3);
  for (const std::size_t count : {std::size_t{1} << 32, (std::size_t{1} << 33) + 5, kMostElements}) {
    for (const std::size_t sent : {1, 2, 1000}) {
      Elements elements = drawn(count, sent - 1, random);
      elements[count - 1] = 3;
      const Bytes message = written(count, elements);
      EXPECT_EQ(read(message, count), elements);
      EXPECT_EQ(message.size(), formula(static_cast<double>(count), static_cast<double>(elements.size())));
    }
  }
}

TEST(SparseMessage, AnEmptyOneIsItsHead) {
  for (const std::size_t count : {0, 1, 100, 1 << 20}) EXPECT_EQ(written(count, {}).size(), kHead);
}

// Whatever single byte or length is changed, a message is refused or says something of as many elements.
TEST(SparseMessage, RefusesOthers) {
  std::mt19937_64 random(4);
  std::size_t refused = 0;
  for (const std::size_t sent : {0, 1, 20, 500, 980, 1000}) {
    const std::size_t count = 1000;
    const Bytes good = written(count, drawn(count, sent, random));
    for (std::size_t length = 0; length < good.size(); length += 1 + length / 50) {
      EXPECT_THROW(read(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)), count), ProtocolError);
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    EXPECT_THROW(read(longer, count), ProtocolError);
    for (std::size_t i = 0; i < good.size(); ++i) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1 + random() % 255);
      std::vector<float> out(count);
      try {
        decode(bad, out);
        add(bad, 1, out);
      } catch (const ProtocolError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(SparseMessage, RefusesPositionsThatDoNotAscend) {
  // Two of 1000: l = 8; positions 3 and 5 share their high part.
  Bytes message = written(1000, {{3, 1.0f}, {5, 2.0f}});
  std::swap(message[message.size() - 1], message[message.size() - 2]);
  EXPECT_THROW(read(message, 1000), ProtocolError);
  message[message.size() - 1] = message[message.size() - 2];
  EXPECT_THROW(read(message, 1000), ProtocolError);
}

TEST(SparseMessage, RefusesPositionsBehindTheEnd) {
  Bytes message = written(1000, {{3, 1.0f}, {999, 2.0f}});
  message.back() = std::byte{0xe8};  // 3 · 256 + 232 = 1000
  EXPECT_THROW(read(message, 1000), ProtocolError);
}

}  // namespace
}  // namespace trireme::compress::sparse

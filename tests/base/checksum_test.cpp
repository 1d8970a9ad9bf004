#include "trireme/base/files/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trireme/base/files/crc32c.h"

namespace trireme {
namespace {

// As published with xxHash.
TEST(Checksum, KnownValues) {
  EXPECT_EQ(checksum(nullptr, 0), 0x2d06800538d394c2u);
  EXPECT_EQ(checksum("abc", 3), 0x78af5f94892f3950u);
  EXPECT_EQ(checksum32("abc", 3), 0x892f3950u);
  EXPECT_EQ(Checksum().value(), checksum(nullptr, 0));
}

TEST(Checksum, IsOfTheBytesNotOfTheCalls) {
  std::mt19937_64 random(5);
  std::string bytes(20000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  Checksum sum;
  for (int round = 0; round < 300; ++round) {
    const auto from = random() % 100;
    const auto text = std::string_view(bytes).substr(from, random() % (round % 2 ? 300 : bytes.size() - from));
    sum.reset();
    for (std::size_t at = 0; at < text.size();) {
      const auto part = std::min<std::size_t>(random() % 700, text.size() - at);
      sum.add(text.substr(at, part));
      at += part;
    }
    const Checksum copy = sum;
    ASSERT_EQ(sum.value(), checksum(text.data(), text.size()));
    ASSERT_EQ(copy.value(), sum.value());
  }
}

TEST(Checksum, EveryTurnedBitIsSeen) {
  std::string bytes(300, 'x');
  const auto whole = checksum32(bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_NE(checksum32(bytes.data(), bytes.size()), whole) << bit;
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

// RFC 3720, B.4.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c("6789", 4, crc32c("12345", 5)), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

}  // namespace
}  // namespace trireme

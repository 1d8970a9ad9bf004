// Messages that a fuzzer found worth keeping, and true ones with a few bits changed, for every codec.
#include "tests/compress/broken_codes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace trireme::compress {
namespace {

TEST(BrokenCodes, KeptOnesAreReadOrRefused) {
  const std::filesystem::path folder = TRIREME_SOURCE_DIR "/tests/fuzz/corpus/codec";
  std::size_t taken = 0, all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(taken += test::try_message(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    ++all;
  }
  EXPECT_GT(all, 100u);
  EXPECT_GT(taken, 20u);
}

// A true message, as what try_message reads.
std::vector<std::uint8_t> true_message(std::uint8_t place, std::uint8_t value, std::mt19937& random) {
  const auto low = static_cast<std::uint8_t>(random()), high = static_cast<std::uint8_t>(random());
  std::vector<std::uint8_t> bytes{place, static_cast<std::uint8_t>(random() % 2 * 2), low, high, value};
  const auto reader = test::reader_of(bytes.data());
  std::vector<float> x(reader.count);
  for (float& number : x) number = random() % 3 == 0 ? 0.0f : static_cast<float>(random() % 2001) * 1e-3f - 1;
  std::vector<std::byte> message(reader.codec->most_bytes(x.size()));
  message.resize(reader.codec->encode(0, x, message.data(), nullptr));
  for (const std::byte byte : message) bytes.push_back(static_cast<std::uint8_t>(byte));
  return bytes;
}

TEST(BrokenCodes, TrueOnesAreReadAndOthersDoNoHarm) {
  std::mt19937 random(1);
  for (std::size_t place = 0; place < codecs().size(); ++place) {
    SCOPED_TRACE(codecs()[place].name);
    for (int round = 0; round < 40; ++round) {
      auto bytes = true_message(static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(round), random);
      EXPECT_TRUE(test::try_message(bytes.data(), bytes.size()));
      for (int change = 0; change < 10; ++change) {
        bytes[1 + random() % (bytes.size() - 1)] ^= static_cast<std::uint8_t>(1 << random() % 8);
        EXPECT_NO_THROW(test::try_message(bytes.data(), bytes.size()));
      }
      EXPECT_NO_THROW(test::try_message(bytes.data(), random() % bytes.size()));
    }
  }
}

}  // namespace
}  // namespace trireme::compress

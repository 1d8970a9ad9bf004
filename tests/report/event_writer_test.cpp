#include "trireme/report/event_writer.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <vector>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"

namespace trireme::train {
namespace {

// CRC-32C by division, bit after bit.
std::uint32_t slow_crc(const std::string& bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (unsigned char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit, byte >>= 1) {
      bool carry = ((crc ^ byte) & 1) != 0;
      crc = carry ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
  }
  return ~crc;
}

std::uint64_t fixed(const std::string& bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

std::uint32_t masked(const std::string& bytes) {
  auto crc = slow_crc(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// The messages of an event file, each with both of its checksums looked at.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size();) {
    auto length = fixed(bytes, at, 8);
    EXPECT_EQ(fixed(bytes, at + 8, 4), masked(bytes.substr(at, 8)));
    found.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(fixed(bytes, at + 12 + length, 4), masked(found.back()));
    at += length + 16;
  }
  return found;
}

// A protobuf message as its fields: number → value, fixed ones as their bits.
struct Message {
  std::map<int, std::uint64_t> numbers;
  std::map<int, std::string> texts;
};
std::uint64_t take_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
Message decode(const std::string& bytes) {
  Message message;
  for (std::size_t at = 0; at < bytes.size();) {
    auto key = take_varint(bytes, at);
    int number = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        message.numbers[number] = take_varint(bytes, at);
        break;
      case 1:
        message.numbers[number] = fixed(bytes, at, 8), at += 8;
        break;
      case 5:
        message.numbers[number] = fixed(bytes, at, 4), at += 4;
        break;
      default: {
        auto length = take_varint(bytes, at);
        message.texts[number] = bytes.substr(at, length), at += length;
      }
    }
  }
  return message;
}

TEST(EventWriter, WritesScalars) {
  ScratchFolder folder;
  EventWriter writer(folder.path());
  EXPECT_THAT(writer.path().filename().string(), testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..+"));
  writer.scalar("train/loss", 0.75, 300, 1.5e9);
  writer.scalar("lr", 1e-3, 70'000'000'000, 1.5e9 + 0.25);
  auto found = records(content(writer.path()));
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(decode(found[0]).texts.at(3), "brain.Event:2");
  const std::pair<const char*, float> expected[] = {{"train/loss", 0.75f}, {"lr", 1e-3f}};
  for (int i = 0; i < 2; ++i) {
    auto event = decode(found[i + 1]);
    EXPECT_EQ(event.numbers.at(2), i == 0 ? 300u : 70'000'000'000u);
    double wall_time;
    std::memcpy(&wall_time, &event.numbers.at(1), 8);
    EXPECT_EQ(wall_time, 1.5e9 + 0.25 * i);
    auto value = decode(decode(event.texts.at(5)).texts.at(1));
    EXPECT_EQ(value.texts.at(1), expected[i].first);
    auto bits = static_cast<std::uint32_t>(value.numbers.at(2));
    float simple;
    std::memcpy(&simple, &bits, 4);
    EXPECT_EQ(simple, expected[i].second);
  }
}

TEST(EventWriter, AResumedRunDropsLaterSteps) {
  ScratchFolder folder;
  EventWriter first(folder.path()), second(folder.path(), 40);
  EXPECT_LT(first.path(), second.path());
  auto found = records(content(second.path()));
  ASSERT_EQ(found.size(), 2);
  auto event = decode(found[1]);
  EXPECT_EQ(event.numbers.at(2), 41u);
  EXPECT_EQ(decode(event.texts.at(7)).numbers.at(1), 1u);
}

TEST(EventWriter, NamesAFileItCannotMake) {
  ScratchFolder folder;
  EXPECT_THAT(message_of<Error>([&] { EventWriter(folder / "none"); }), testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace trireme::train

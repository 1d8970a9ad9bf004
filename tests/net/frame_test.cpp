// Frames. The reader of frames gets 300,000 broken streams from a seed and must bear them all.
#include "trireme/net/tcp/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "trireme/base/error.h"
#include "trireme/base/files/checksum.h"

namespace trireme::net {
namespace {

using ::testing::HasSubstr;

std::string encode(FrameKind kind, std::string_view payload, std::uint64_t sequence, std::uint16_t flags = 0) {
  FrameHeader header{.kind = kind, .flags = flags, .length = payload.size(), .sequence = sequence};
  if (flags & kPayloadChecked) header.payload_sum = checksum32(payload.data(), payload.size());
  seal(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + std::string(payload);
}

// Feeds a stream in pieces of `piece` bytes; the payloads of the frames that came out.
std::vector<std::string> read_all(FrameReader& reader, std::string_view stream, std::size_t piece) {
  std::vector<std::string> payloads;
  while (!stream.empty()) {
    auto space = reader.space();
    auto bytes = std::min({space.size(), stream.size(), piece});
    std::memcpy(space.data(), stream.data(), bytes);
    stream.remove_prefix(bytes);
    if (auto frame = reader.filled(bytes)) payloads.emplace_back(frame->payload);
  }
  return payloads;
}

TEST(FrameReader, ReadsFramesHoweverTheyAreCut) {
  std::string stream = encode(FrameKind::ping, "", 0) + encode(FrameKind::abort, "why", 1) +
                       encode(FrameKind::contact, "[::1]:80", 2, kPayloadChecked) + encode(FrameKind::goodbye, "", 3);
  for (std::size_t piece : {1, 7, 56, 1000}) {
    FrameReader reader(4);
    EXPECT_THAT(read_all(reader, stream, piece), ::testing::ElementsAre("", "why", "[::1]:80", ""));
  }
}

TEST(FrameReader, RefusesWhatItMust) {
  auto fault = [](const std::string& stream) -> std::string {
    FrameReader reader(2);
    try {
      read_all(reader, stream, 1000);
    } catch (const ProtocolError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(fault(std::string(56, 'x')), HasSubstr("does not begin"));
  EXPECT_THAT(fault(encode(FrameKind::data, "", 0)), HasSubstr("no place"));
  EXPECT_THAT(fault(encode(FrameKind::ping, "x", 0)), HasSubstr("no place"));
  EXPECT_THAT(fault(encode(FrameKind::abort, std::string(513, 'x'), 0)), HasSubstr("no place"));
  EXPECT_THAT(fault(encode(FrameKind::contacts, std::string(257, 'x'), 0)), HasSubstr("no place"));
  EXPECT_THAT(fault(encode(FrameKind::ping, "", 1)), HasSubstr("was due"));
  EXPECT_THAT(fault(encode(static_cast<FrameKind>(7), "", 0)), HasSubstr("unknown kind"));
  EXPECT_THAT(fault(encode(FrameKind::ping, "", 0, 1 << 9)), HasSubstr("unknown flags"));
  std::string broken = encode(FrameKind::abort, "why", 0, kPayloadChecked);
  broken.back() = 'Y';
  EXPECT_THAT(fault(broken), HasSubstr("payload"));
  FrameHeader other{.version = 1};
  seal(other);
  EXPECT_THAT(fault(std::string(reinterpret_cast<char*>(&other), sizeof other)), HasSubstr("version"));
  FrameHeader huge{.kind = FrameKind::abort, .length = ~std::uint64_t{0}};
  seal(huge);
  EXPECT_THAT(fault(std::string(reinterpret_cast<char*>(&huge), sizeof huge)), HasSubstr("impossible length"));
}

// A sound stream with a few bits turned, bytes lost or garbage put in. Turned bits must never get through a header
// unseen: whatever comes out is one of the payloads that went in, or the abort text that was hit.
TEST(FrameReader, BearsEveryBrokenStream) {
  std::mt19937_64 random(20260101);
  const std::string sound = encode(FrameKind::ping, "", 0) +
                            encode(FrameKind::contact, "127.0.0.1:4000", 1, kPayloadChecked) +
                            encode(FrameKind::pong, "", 2, kInCall) + encode(FrameKind::goodbye, "", 3);
  int refused = 0;
  for (int i = 0; i < 300000; ++i) {
    std::string stream = sound;
    auto kind = random() % 4;
    if (kind == 0) {
      for (auto flips = 1 + random() % 3; flips > 0; --flips)
        stream[random() % stream.size()] ^= static_cast<char>(1 << random() % 8);
    } else if (kind == 1) {
      stream.erase(random() % stream.size(), 1 + random() % 20);
    } else if (kind == 2) {
      stream.insert(random() % stream.size(), std::string(1 + random() % 20, static_cast<char>(random())));
    } else {
      stream.resize(random() % 200);
      for (char& c : stream) c = static_cast<char>(random());
    }
    FrameReader reader(3);
    try {
      for (const auto& payload : read_all(reader, stream, 1 + random() % 80)) {
        ASSERT_TRUE(payload.empty() || payload == "127.0.0.1:4000") << payload;
      }
    } catch (const ProtocolError&) {
      ++refused;
    }
    ASSERT_LE(reader.space().size(), kHeaderBytes + 3 * FrameReader::kLongestContact);
  }
  EXPECT_GT(refused, 150000);
}

// Headers of random bytes, and sound ones in which any one bit is turned.
TEST(FrameHeader, EveryTurnedBitIsSeen) {
  FrameHeader header{.call = {.sequence = 7, .count = 100, .what = 6}, .length = 400, .sequence = 9};
  seal(header);
  ASSERT_EQ(fault_of(header), "");
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    FrameHeader broken = header;
    reinterpret_cast<unsigned char*>(&broken)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_NE(fault_of(broken), "") << bit;
  }
}

}  // namespace
}  // namespace trireme::net

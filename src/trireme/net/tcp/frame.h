// What travels on an authenticated connection: a header of 56 bytes, then `length` bytes. Little-endian.
//
//   offset  0 magic "TRI\n"   4 version   5 kind   6 flags   8 CallId (24 bytes)   32 length   40 sequence
//          48 checksum of the payload (with kPayloadChecked, else 0)   52 checksum of the 52 bytes before
// Checksums are the lower 32 bits of XXH3; version 1 had CRC-32C in their places.
// The header's checksum is always there. Sequence counts the frames of one connection and direction from 0.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/net/transport.h"

namespace trireme::net {

static_assert(std::endian::native == std::endian::little, "frames and payloads are little-endian on the wire");

enum class FrameKind : std::uint8_t {
  data,      // a message of a channel
  ping,      // what are you doing?
  pong,      // the answer: `call`, and kInCall
  abort,     // why the sender gives up, as text
  goodbye,   // the sender is done; the connection ends
  contact,   // to rank 0: where the sender listens, as text
  contacts,  // from rank 0: where everybody listens, a line each
};
inline constexpr std::uint8_t kFrameKinds = 7;

inline constexpr std::uint16_t kPayloadChecked = 1;
inline constexpr std::uint16_t kInCall = 2;

struct FrameHeader {
  static constexpr std::uint32_t kMagic = 0x0a495254;
  static constexpr std::uint8_t kVersion = 2;
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 40;

  std::uint32_t magic = kMagic;
  std::uint8_t version = kVersion;
  FrameKind kind = FrameKind::data;
  std::uint16_t flags = 0;
  CallId call;
  std::uint64_t length = 0;
  std::uint64_t sequence = 0;
  std::uint32_t payload_sum = 0;
  std::uint32_t header_sum = 0;
};
inline constexpr std::size_t kHeaderBytes = 56;
static_assert(sizeof(FrameHeader) == kHeaderBytes);

// Fills in the header's checksum; it must be the last thing done to it.
void seal(FrameHeader& header);

// Empty when the header is one of ours, else what is wrong with it. `header` is then not to be used.
std::string_view fault_of(const FrameHeader& header);

// Takes control frames out of a stream of bytes. Never holds more than one frame of its kind's greatest length.
class FrameReader {
 public:
  static constexpr std::size_t kLongestText = 512;     // abort
  static constexpr std::size_t kLongestContact = 128;  // one rank's line

  // `ranks` bounds the list of contacts.
  explicit FrameReader(int ranks) : ranks_(static_cast<std::size_t>(ranks)) { buffer_.resize(kHeaderBytes); }

  struct Frame {
    FrameHeader header;
    std::string_view payload;  // until space() is called
  };
  // Where the next bytes of the stream go: exactly as many as the present frame still needs, at least one.
  std::span<std::byte> space();
  // Says how many were put there. A frame when one is complete. Throws ProtocolError, after which the stream is dead.
  std::optional<Frame> filled(std::size_t bytes);

 private:
  std::size_t longest(FrameKind kind) const;

  const std::size_t ranks_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;
  std::uint64_t sequence_ = 0;
  enum class State { header, payload, complete } state_ = State::header;
};

}  // namespace trireme::net

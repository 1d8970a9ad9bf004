#include "trireme/net/tcp/frame.h"

#include <fmt/format.h>

#include <cstring>

#include "trireme/base/error.h"
#include "trireme/base/files/checksum.h"

namespace trireme::net {
namespace {

constexpr std::size_t kSealed = offsetof(FrameHeader, header_sum);
constexpr std::uint16_t kKnownFlags = kPayloadChecked | kInCall;

}  // namespace

void seal(FrameHeader& header) { header.header_sum = checksum32(&header, kSealed); }

std::string_view fault_of(const FrameHeader& header) {
  if (header.magic != FrameHeader::kMagic) return "does not begin a frame";
  if (header.version != FrameHeader::kVersion) return "is of another version of the protocol";
  if (header.header_sum != checksum32(&header, kSealed)) return "has a wrong checksum";
  if (static_cast<std::uint8_t>(header.kind) >= kFrameKinds) return "is of an unknown kind";
  if ((header.flags & ~kKnownFlags) != 0) return "has unknown flags";
  if (header.length > FrameHeader::kLongest) return "claims an impossible length";
  return {};
}

std::size_t FrameReader::longest(FrameKind kind) const {
  switch (kind) {
    case FrameKind::abort:
      return kLongestText;
    case FrameKind::contact:
      return kLongestContact;
    case FrameKind::contacts:
      return ranks_ * kLongestContact;
    default:
      return 0;
  }
}

std::span<std::byte> FrameReader::space() {
  if (state_ == State::complete) {
    state_ = State::header;
    buffer_.resize(kHeaderBytes);
    filled_ = 0;
  }
  return std::span(buffer_).subspan(filled_);
}

std::optional<FrameReader::Frame> FrameReader::filled(std::size_t bytes) {
  TRIREME_CHECK(state_ != State::complete && bytes <= buffer_.size() - filled_);
  filled_ += bytes;
  if (filled_ < buffer_.size()) return std::nullopt;
  FrameHeader header;
  std::memcpy(&header, buffer_.data(), kHeaderBytes);
  if (state_ == State::header) {
    if (auto fault = fault_of(header); !fault.empty()) {
      throw ProtocolError(fmt::format("a control frame {}", fault));
    }
    if (header.kind == FrameKind::data || header.length > longest(header.kind)) {
      throw ProtocolError(fmt::format("a control frame of kind {} and {} bytes has no place here",
                                      static_cast<int>(header.kind), header.length));
    }
    if (header.sequence != sequence_) {
      throw ProtocolError(fmt::format("control frame {} came where {} was due", header.sequence, sequence_));
    }
    ++sequence_;
    state_ = State::payload;
    buffer_.resize(kHeaderBytes + header.length);
    if (header.length > 0) return std::nullopt;
  }
  const std::byte* payload = buffer_.data() + kHeaderBytes;
  if ((header.flags & kPayloadChecked) && checksum32(payload, header.length) != header.payload_sum) {
    throw ProtocolError("a control frame's payload has a wrong checksum");
  }
  state_ = State::complete;
  return Frame{header, {reinterpret_cast<const char*>(payload), header.length}};
}

}  // namespace trireme::net

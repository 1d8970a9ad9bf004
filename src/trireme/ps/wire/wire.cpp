#include "trireme/ps/wire/wire.h"

#include <fmt/format.h>

#include "trireme/base/files/checksum.h"

namespace trireme::ps {

std::uint32_t longest_body(Kind kind) {
  switch (kind) {
    case Kind::view:
    case Kind::declare:
    case Kind::push:
    case Kind::snapshot:
    case Kind::record:
      return 64 << 20;
    case Kind::sum:
    case Kind::answer:
    case Kind::init:
    case Kind::pull:
    case Kind::values:
    case Kind::done:
    case Kind::reject:
      return 1 << 20;
    default:
      return 4096;
  }
}

void seal(Header& header, std::string_view body) {
  header.body = static_cast<std::uint32_t>(body.size());
  header.body_sum = checksum32(body.data(), body.size());
  header.header_sum = checksum32(&header, offsetof(Header, header_sum));
}

std::string_view fault_of(const Header& header) {
  if (header.magic != Header::kMagic) return "not a frame of a parameter server";
  if (header.version != Header::kVersion) return "another version of the protocol";
  if (header.header_sum != checksum32(&header, offsetof(Header, header_sum))) return "its checksum is wrong";
  auto kind = static_cast<std::uint8_t>(header.kind);
  if (kind == 0 || kind > kLastKind) return "a kind of frame that is not known";
  if (header.body > longest_body(header.kind)) return "a body that is too long";
  if (header.payload > Header::kLongestPayload) return "a payload that is too long";
  return {};
}

std::string_view Unpacker::take(std::size_t bytes) {
  if (bytes > rest_.size()) throw ProtocolError("a frame of the parameter server ends early");
  auto result = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return result;
}

std::size_t Unpacker::count(std::size_t each) {
  std::size_t n = get<std::uint32_t>();
  if (n > rest_.size() / each)
    throw ProtocolError("a list in a frame of the parameter server is longer than the frame");
  return n;
}

void Unpacker::end() const {
  if (!rest_.empty()) throw ProtocolError("a frame of the parameter server has bytes left over");
}

std::size_t Sink::bytes() const {
  std::size_t sum = 0;
  for (auto part : parts) sum += part.size();
  return sum;
}

std::span<std::byte> Parser::space() {
  switch (state_) {
    case State::header:
      return std::as_writable_bytes(std::span(&frame_.header, 1)).subspan(filled_);
    case State::body:
      return std::as_writable_bytes(std::span(frame_.body)).subspan(filled_);
    default:
      return frame_.payload.parts[part_].subspan(filled_);
  }
}

bool Parser::filled(std::size_t bytes) {
  filled_ += bytes;
  while (state_ != State::complete && space().empty()) {
    if (!advance()) break;
  }
  return state_ == State::complete;
}

// From one part of the frame to the next; false when there is none.
bool Parser::advance() {
  filled_ = 0;
  if (state_ == State::header) {
    auto fault = fault_of(frame_.header);
    if (!fault.empty()) throw ProtocolError(fmt::format("a broken frame of the parameter server: {}", fault));
    frame_.body.resize(frame_.header.body);
    state_ = State::body;
    return true;
  }
  if (state_ == State::body) {
    if (checksum32(frame_.body.data(), frame_.body.size()) != frame_.header.body_sum) {
      throw ProtocolError("a broken frame of the parameter server: the body's checksum is wrong");
    }
    if (frame_.header.payload > 0) {
      frame_.payload = place_(frame_.header, frame_.body);
      std::erase_if(frame_.payload.parts, [](auto part) { return part.empty(); });
      if (frame_.payload.bytes() != frame_.header.payload) {
        throw ProtocolError("a frame of the parameter server has a payload of another length than it must have");
      }
      part_ = 0;
      state_ = State::payload;
      return true;
    }
  } else if (++part_ < frame_.payload.parts.size()) {
    return true;
  }
  state_ = State::complete;
  return false;
}

Frame Parser::take() {
  state_ = State::header;
  filled_ = 0;
  Frame whole = std::move(frame_);
  frame_ = Frame{};
  return whole;
}

}  // namespace trireme::ps

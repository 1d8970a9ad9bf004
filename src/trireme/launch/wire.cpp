#include "trireme/launch/wire.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::launch {
namespace {

constexpr std::size_t kMostUnsent = 1 << 18;  // a peer that takes nothing is noticed by its silence

}  // namespace

Wire::Wire(EventLoop& loop, net::Fd fd, OnMessage on_message, OnClosed on_closed)
    : loop_(loop), fd_(std::move(fd)), on_message_(std::move(on_message)), on_closed_(std::move(on_closed)) {
  loop_.watch(fd_.get(), EPOLLIN, [this](std::uint32_t events) { ready(events); });
}

Wire::~Wire() {
  loop_.forget(fd_.get());
  if (destroyed_ != nullptr) *destroyed_ = true;
}

void Wire::send_plain(std::string_view bytes) {
  out_ += bytes;
  flush();
}

void Wire::send(std::string_view message) {
  if (message.size() > kLongest || out_.size() > kMostUnsent) return;
  auto length = static_cast<std::uint32_t>(message.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof length);
  out_ += message;
  flush();
}

void Wire::flush() {
  while (!out_.empty()) {
    ssize_t put = ::send(fd_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) out_.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;  // a broken connection is found by reading
  }
  loop_.change(fd_.get(), out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

// Takes what has come; false when the connection has ended.
bool Wire::read_all(std::string& closed_because) {
  std::array<char, Wire::kLongest> buffer;
  ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    in_.append(buffer.data(), static_cast<std::size_t>(got));
    last_heard_ = Clock::now();
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  closed_because = got == 0 ? "its launcher is gone" : std::strerror(errno);
  return false;
}

// The length of a message that has come whole, its header removed. `open` turns false when it is none of ours.
std::optional<std::size_t> Wire::next_message(bool& open) {
  if (plain_ > 0) return in_.size() >= plain_ ? std::optional(plain_) : std::nullopt;
  std::uint32_t length = 0;
  if (in_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, in_.data(), sizeof length);
  if (length == 0 || length > kLongest) {
    open = false;
    return std::nullopt;
  }
  if (in_.size() < sizeof length + length) return std::nullopt;
  in_.erase(0, sizeof length);
  return length;
}

void Wire::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  std::string closed_because;
  bool open = read_all(closed_because);
  bool gone = false;
  destroyed_ = &gone;
  while (auto length = next_message(open)) {
    std::string message = in_.substr(0, *length);
    in_.erase(0, *length);
    on_message_(message);
    if (gone) return;
  }
  destroyed_ = nullptr;
  if (open) return;
  if (closed_because.empty()) closed_because = "it does not speak this protocol";
  loop_.forget(fd_.get());
  auto closed = on_closed_;  // may destroy us
  closed(closed_because);
}

Packer& Packer::number(std::int32_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  return *this;
}

Packer& Packer::text(std::string_view value) {
  value = value.substr(0, 2048);
  number(static_cast<std::int32_t>(value.size()));
  bytes_ += value;
  return *this;
}

Unpacker::Unpacker(std::string_view message) : kind_(0), rest_(message) {
  if (rest_.empty()) throw ProtocolError("an empty message from another launcher");
  kind_ = static_cast<std::uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
}

std::int32_t Unpacker::number() {
  std::int32_t value = 0;
  if (rest_.size() < sizeof value) throw ProtocolError("a message from another launcher is cut short");
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string Unpacker::text() {
  std::int32_t length = number();
  if (length < 0 || static_cast<std::size_t>(length) > rest_.size()) {
    throw ProtocolError("a message from another launcher is cut short");
  }
  std::string value(rest_.substr(0, static_cast<std::size_t>(length)));
  rest_.remove_prefix(static_cast<std::size_t>(length));
  return value;
}

}  // namespace trireme::launch

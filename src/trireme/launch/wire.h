// A connection between two launchers: messages of at most 4 KiB, each a 4-byte length and its bytes, non-blocking.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/launch/event_loop.h"

namespace trireme::launch {

class Wire {
 public:
  static constexpr std::size_t kLongest = 4096;

  using OnMessage = std::function<void(std::string_view)>;
  using OnClosed = std::function<void(const std::string& why)>;

  // Each callback may destroy the Wire. `on_closed` comes once, also after a message that is too long.
  Wire(EventLoop& loop, net::Fd fd, OnMessage on_message, OnClosed on_closed);
  ~Wire();
  Wire(const Wire&) = delete;

  void send(std::string_view message);
  // While peers prove the job key to each other they speak without lengths: what comes next is `bytes` long each;
  // 0: messages again.
  void expect_plain(std::size_t bytes) { plain_ = bytes; }
  void send_plain(std::string_view bytes);
  int fd() const { return fd_.get(); }
  Clock::time_point last_heard() const { return last_heard_; }

 private:
  void ready(std::uint32_t events);
  bool read_all(std::string& closed_because);
  std::optional<std::size_t> next_message(bool& open);
  void flush();

  EventLoop& loop_;
  net::Fd fd_;
  OnMessage on_message_;
  OnClosed on_closed_;
  std::size_t plain_ = 0;
  std::string in_, out_;
  Clock::time_point last_heard_ = Clock::now();
  bool* destroyed_ = nullptr;  // set while a callback runs
};

// Fields one after the other: integers of 4 bytes, texts with their length before them.
class Packer {
 public:
  explicit Packer(std::uint8_t kind) : bytes_(1, static_cast<char>(kind)) {}
  Packer& number(std::int32_t value);
  Packer& text(std::string_view value);  // cut at 2 KiB
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws ProtocolError when a field is not there.
class Unpacker {
 public:
  explicit Unpacker(std::string_view message);
  std::uint8_t kind() const { return kind_; }
  std::int32_t number();
  std::string text();

 private:
  std::uint8_t kind_;
  std::string_view rest_;
};

}  // namespace trireme::launch

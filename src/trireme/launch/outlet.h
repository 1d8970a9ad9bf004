// Our stdout or stderr, written without ever blocking: what does not fit yet is kept, and the writers held back.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "trireme/launch/event_loop.h"
#include "trireme/net/fd.h"

namespace trireme::launch {

class Outlet {
 public:
  // `fd` (1 or 2) stays open; its flags are left alone, as other processes share them.
  Outlet(EventLoop& loop, int fd);
  ~Outlet();
  Outlet(const Outlet&) = delete;

  void write(std::string_view bytes);
  std::size_t backlog() const { return pending_.size() - written_; }
  // The reader went away or the disk is full: an errno. What is written from then on is dropped.
  int error() const { return error_; }
  bool is_terminal() const { return is_terminal_; }
  // Called when the backlog has shrunk to nothing, and when an error stops it.
  void on_drained(std::function<void()> call) { drained_ = std::move(call); }

 private:
  void flush();

  EventLoop& loop_;
  net::Fd own_;  // the same file opened once more, for its own O_NONBLOCK
  int fd_;
  bool is_socket_ = false, is_terminal_ = false;
  bool waiting_ = false;
  std::string pending_;
  std::size_t written_ = 0;  // bytes of pending_ that are out
  int error_ = 0;
  std::function<void()> drained_;
};

}  // namespace trireme::launch

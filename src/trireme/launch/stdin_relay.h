// Passes what is typed at the terminal to rank 0, which, being in another process group, may not read it itself.
// Where stdin is not a terminal rank 0 simply inherits it.
#pragma once
#include <string>

#include "trireme/launch/event_loop.h"
#include "trireme/net/fd.h"

namespace trireme::launch {

class StdinRelay {
 public:
  StdinRelay(EventLoop& loop, net::Fd to);
  ~StdinRelay();
  StdinRelay(const StdinRelay&) = delete;

 private:
  void watch();
  void read();
  void write();
  void stop();
  void look_again_later();

  EventLoop& loop_;
  net::Fd to_;
  bool watching_ = false, writing_ = false, at_end_ = false;
  std::string pending_;
  EventLoop::TimerId timer_{};
};

}  // namespace trireme::launch

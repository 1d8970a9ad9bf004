// Waits for descriptors and timers and calls what belongs to them, all on one thread.
#pragma once
#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "trireme/base/clock.h"
#include "trireme/net/fd.h"

namespace trireme::launch {

class EventLoop {
 public:
  using Ready = std::function<void(std::uint32_t events)>;  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
  using TimerId = std::pair<Clock::time_point, std::uint64_t>;

  EventLoop();
  // `fd` stays the caller's; forget it before closing it. Not for regular files.
  void watch(int fd, std::uint32_t events, Ready ready);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  TimerId after(Duration wait, std::function<void()> run);
  void cancel(TimerId id);

  // Waits for at least one event or timer and handles what is due. Whatever a callback throws passes through.
  void step();

 private:
  void run_due_timers();

  net::Fd epoll_;
  std::map<int, std::shared_ptr<Ready>> watched_;
  std::map<TimerId, std::function<void()>> timers_;
  std::uint64_t next_timer_ = 0;
};

}  // namespace trireme::launch

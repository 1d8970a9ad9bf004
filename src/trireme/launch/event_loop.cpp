#include "trireme/launch/event_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::launch {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw Error(fmt::format("epoll_create1: {}", std::strerror(errno)));
}

void EventLoop::watch(int fd, std::uint32_t events, Ready ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Error(fmt::format("epoll_ctl on descriptor {}: {}", fd, std::strerror(errno)));
  }
  watched_[fd] = std::make_shared<Ready>(std::move(ready));
}

void EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
  if (watched_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::after(Duration wait, std::function<void()> run) {
  TimerId id{Clock::now() + wait, next_timer_++};
  timers_.emplace(id, std::move(run));
  return id;
}

void EventLoop::cancel(TimerId id) { timers_.erase(id); }

void EventLoop::run_due_timers() {
  auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto run = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    run();
  }
}

void EventLoop::step() {
  int wait_ms = 60'000;
  if (!timers_.empty()) {
    auto rest = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
    wait_ms = static_cast<int>(std::clamp<std::int64_t>(rest.count(), 0, wait_ms));
  }
  std::array<epoll_event, 64> events;
  int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  if (count < 0 && errno != EINTR) throw Error(fmt::format("epoll_wait: {}", std::strerror(errno)));
  for (int i = 0; i < count; ++i) {
    auto found = watched_.find(events[i].data.fd);
    if (found == watched_.end()) continue;  // forgotten by an earlier callback
    auto ready = found->second;             // outlives a callback that forgets itself
    (*ready)(events[i].events);
  }
  run_due_timers();
}

}  // namespace trireme::launch

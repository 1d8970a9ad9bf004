#include "trireme/launch/stdin_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace trireme::launch {
namespace {

constexpr auto kBackgroundCheck = std::chrono::milliseconds(250);

}  // namespace

StdinRelay::StdinRelay(EventLoop& loop, net::Fd to) : loop_(loop), to_(std::move(to)) {
  ::fcntl(to_.get(), F_SETFL, ::fcntl(to_.get(), F_GETFL) | O_NONBLOCK);
  watch();
}

StdinRelay::~StdinRelay() { stop(); }

void StdinRelay::stop() {
  if (std::exchange(watching_, false)) loop_.forget(0);
  if (std::exchange(writing_, false)) loop_.forget(to_.get());
  loop_.cancel(timer_);
  to_.reset();
}

void StdinRelay::watch() {
  watching_ = true;
  loop_.watch(0, EPOLLIN, [this](std::uint32_t) { read(); });
}

// In the background the terminal belongs to someone else.
void StdinRelay::look_again_later() {
  if (std::exchange(watching_, false)) loop_.forget(0);
  timer_ = loop_.after(kBackgroundCheck, [this] { watch(); });
}

void StdinRelay::read() {
  if (::tcgetpgrp(0) != ::getpgrp()) return look_again_later();
  std::array<char, 4096> buffer;
  ssize_t got = ::read(0, buffer.data(), buffer.size());
  if (got < 0 && errno == EIO) return look_again_later();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  loop_.forget(0);
  watching_ = false;
  at_end_ = got <= 0;
  if (got > 0) pending_.assign(buffer.data(), static_cast<std::size_t>(got));
  write();
}

void StdinRelay::write() {
  while (!pending_.empty()) {
    ssize_t put = ::write(to_.get(), pending_.data(), pending_.size());
    if (put > 0) pending_.erase(0, static_cast<std::size_t>(put));
    if (put >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return stop();  // rank 0 closed its stdin
    if (!std::exchange(writing_, true)) loop_.watch(to_.get(), EPOLLOUT, [this](std::uint32_t) { write(); });
    return;
  }
  if (std::exchange(writing_, false)) loop_.forget(to_.get());
  if (at_end_) return stop();
  watch();
}

}  // namespace trireme::launch

// How a run is stopped by signals.
#include <unistd.h>

#include <ctime>

#include "trireme/cli/torch/train_command.h"

namespace trireme::cli {

volatile std::sig_atomic_t asked_to_stop = 0;

namespace {

volatile std::int64_t asked_at_ms = 0;

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

void on_stop_signal(int number) {
  constexpr std::int64_t kSameMs = 300;
  if (asked_to_stop == 0) {
    asked_to_stop = number;
    asked_at_ms = milliseconds();
  } else if (milliseconds() - asked_at_ms > kSameMs) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

void on_launcher_signal(int number) {
  if (::gettid() != ::getpid()) {
    ::tgkill(::getpid(), ::getpid(), number);
  } else {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

void heed_stop_signals(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

}  // namespace trireme::cli

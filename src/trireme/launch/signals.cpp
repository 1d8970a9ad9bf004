#include "trireme/launch/signals.h"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::launch {
namespace {

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

std::string describe_signal(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("signal {} (SIG{})", number, name);
}

bool ends_programs(int number) {
  return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

SignalCatcher::SignalCatcher() {
  sigset_t caught;
  sigemptyset(&caught);
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP}) {
    if (!is_ignored(number)) sigaddset(&caught, number);
  }
  for (int number : {SIGCONT, SIGPIPE, SIGTTIN, SIGTTOU}) sigaddset(&caught, number);
  ::sigprocmask(SIG_BLOCK, &caught, &before_);
  fd_.reset(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw Error(fmt::format("signalfd: {}", std::strerror(errno)));
}

SignalCatcher::~SignalCatcher() {
  while (next() != 0) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int SignalCatcher::next() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    int number = static_cast<int>(info.ssi_signo);
    if (number != SIGPIPE && number != SIGTTIN && number != SIGTTOU) return number;
  }
  return 0;
}

void SignalCatcher::suspend() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // here it takes effect
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace trireme::launch

#include "trireme/base/files/file_limit.h"

#include <cerrno>
#include <ctime>

namespace trireme {

void report_file_limit() {
  struct sigaction now {};
  if (::sigaction(SIGXFSZ, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  now = {};
  now.sa_handler = [](int) {};  // unlike SIG_IGN, it ends with exec
  now.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &now, nullptr);
}

NoSizeSignal::NoSizeSignal() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

NoSizeSignal::~NoSizeSignal() {
  const int error = errno;
  timespec none{};
  if (sigismember(&before_, SIGXFSZ) == 0) {
    while (sigtimedwait(&set_, nullptr, &none) == SIGXFSZ) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace trireme

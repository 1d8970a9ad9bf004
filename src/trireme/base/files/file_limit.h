// The limit on file sizes (ulimit -f). Whoever writes beyond it is told by a signal that ends programs without a word,
// SIGXFSZ; here that is made the error EFBIG, which can be reported.
#pragma once
#include <csignal>

namespace trireme {

// For programs, at their start: from then on no thread gets the signal. Programs that are started from this one begin
// as if it had not been called.
void report_file_limit();

// For libraries: the same for this thread, while it lives.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t set_, before_;
};

}  // namespace trireme

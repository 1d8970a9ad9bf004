// The signals a launcher takes for its workers.
#pragma once
#include <csignal>
#include <string>

#include "trireme/net/fd.h"

namespace trireme::launch {

// "signal 9 (SIGKILL)".
std::string describe_signal(int number);
bool ends_programs(int number);  // HUP, INT, QUIT, TERM

// While it lives, HUP INT QUIT TERM USR1 USR2 TSTP CONT arrive at fd() instead of acting on this process, unless they
// were ignored (nohup); PIPE, TTIN and TTOU do nothing. No disposition changes, so that none leaks into workers.
class SignalCatcher {
 public:
  SignalCatcher();
  ~SignalCatcher();
  SignalCatcher(const SignalCatcher&) = delete;

  int fd() const { return fd_.get(); }
  int next();  // 0 when there is none
  const sigset_t& mask_before() const { return before_; }
  // Stops this process as SIGTSTP does, until it is continued.
  void suspend();

 private:
  net::Fd fd_;
  sigset_t before_{};
};

}  // namespace trireme::launch

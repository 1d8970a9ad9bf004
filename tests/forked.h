// A copy of the test's own process that runs a part of it: fork() without exec, so before there are threads.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace trireme::test {

class Forked {
 public:
  // `body` gives its exit code; what it throws is code 99.
  template <typename Body>
  explicit Forked(const Body& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  ~Forked() { kill(); }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::kill(pid_, SIGCONT);
    wait();
  }
  // Its exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

}  // namespace trireme::test

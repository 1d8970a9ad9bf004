// Another program, started and watched: every program that Trireme starts is one of these, but for the workers of a
// job, whom their guardian starts (launch/guardian_process.h).
#pragma once
#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/clock.h"

namespace trireme {

struct ChildStart {
  static constexpr int kOurs = -1, kNothing = -2;  // this process's own; /dev/null
  int in = kNothing, out = kOurs, err = kOurs;     // descriptors, or one of these
  bool own_group = true;                           // out of reach of Ctrl-C; what it starts itself ends with it
  int when_we_end = SIGTERM;                       // sent to it when this process ends before it; 0: nothing
  int network_namespace = -1;                      // it runs inside; -1: in this process's
};

// For one thread.
class ChildProcess {
 public:
  // Looks for command[0] in PATH unless it has a slash. Throws Error where it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command, const ChildStart& start = {});
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Ends what still runs, as finish() does.
  ~ChildProcess();

  pid_t pid() const { return pid_; }  // -1 once it has ended
  // Its exit code, or 128 + the signal that ended it, once it has ended; kUnknown where this process ignores SIGCHLD
  // and the kernel keeps no status.
  static constexpr int kUnknown = -1;
  std::optional<int> ended();
  // Until it has, or the deadline.
  std::optional<int> wait(Deadline deadline);
  // Waits so long; then asks it to end (SIGTERM), and kills its group two seconds later.
  int finish(Duration longest);
  void signal(int number) const;

 private:
  std::optional<int> reap(int options);
  pid_t pid_ = -1;
  bool own_group_ = false;
  std::optional<int> code_;
};

}  // namespace trireme

// The process between the launcher and the workers, so that nothing outlives the job even if the launcher is killed.
//
// launcher ── guardian ── worker 0 … worker n-1 ── whatever they start
//
// The guardian is a child of the launcher in a process group of its own, and parent of every worker. It adopts every
// process below it that loses its parent (subreaper), so that none can slip away by double fork or setsid. It watches
// a socket to the launcher: at its end (the launcher is gone, however) it kills all that is below and leaves. A worker
// is killed by the kernel when the guardian dies (parent-death signal), and the launcher, a subreaper too, sweeps what
// is left then.
#pragma once
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <csignal>

#include <optional>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/net/fd.h"

namespace trireme::launch {

// What a worker is given between fork and exec.
struct WorkerStart {
  std::vector<std::string> environment;  // NAME=value
  int in = -1, out = -1, err = -1;       // become 0, 1 and 2; -1: inherited
  std::vector<int> keep;                 // inherited under their own numbers
  int network = -1;                      // the namespace it lives in; -1: ours
  std::optional<cpu_set_t> cores;        // that it may use; none: ours
};

struct GuardianSpec {
  std::string program;                 // path
  std::vector<std::string> arguments;  // with the name first
  std::vector<WorkerStart> workers;
  Duration grace{};
  sigset_t signal_mask{};  // of the workers
  rlimit open_files{};     // of the workers
};

struct GuardianEvent {
  enum class Kind : int { exited, exec_failed, unkillable, stopped, continued } kind = Kind::exited;
  int worker = -1;  // index in GuardianSpec::workers
  pid_t pid = -1;
  int status = 0;  // from waitpid, an errno, or the signal that stopped it
};

class Guardian {
 public:
  // Forks the guardian, which starts the workers.
  explicit Guardian(const GuardianSpec& spec);
  // Kills what is left and waits for it.
  ~Guardian();
  Guardian(const Guardian&) = delete;

  int fd() const { return control_.get(); }
  pid_t pid() const { return pid_; }
  // The next thing that happened, if any; ended() turns true when nothing below the guardian is left.
  std::optional<GuardianEvent> next();
  bool ended() const { return ended_; }
  // True if the guardian itself was killed; what was below it is gone too.
  bool died() const { return died_; }

  void signal(int number);    // to the group of every worker that still runs
  void go_on();               // if somebody stopped the guardian itself: nobody else would end the job
  void kill(int worker);      // its group, at once
  void stop(Duration grace);  // SIGTERM, after `grace` SIGKILL to every process below

 private:
  void collect();
  void sweep_orphans();

  net::Fd control_;
  pid_t pid_ = -1;
  bool ended_ = false, died_ = false;
  int was_subreaper_ = 0;
  std::vector<pid_t> strangers_;  // children of this process from before
};

}  // namespace trireme::launch

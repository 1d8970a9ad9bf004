// What runs inside the guardian process (see guardian.h). It is one thread, holds no lock and never returns.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/launch/guardian.h"

namespace trireme::launch {

// From the launcher, one packet each.
struct GuardianOrder {
  enum class Kind : int { signal, kill, stop } kind;
  int number;  // the signal; of kill: the worker
  std::int64_t grace_ns;
};

class GuardianProcess {
 public:
  GuardianProcess(const GuardianSpec& spec, int control) : spec_(spec), control_(control) {}
  // Starts the workers and stays until nothing is left below.
  [[noreturn]] void run();

 private:
  struct Worker {
    pid_t pid = -1;
    bool running = false;
  };

  void set_up();
  void start_workers();
  [[noreturn]] void become_worker(const WorkerStart& start, int index, pid_t guardian);
  void wait_for_news();
  void obey();
  void reap();
  void reap(pid_t pid, int status);
  void report_exec_failures();
  void signal_workers(int number);
  void begin_stop(Duration grace);
  void kill_if_due();
  void report(GuardianEvent::Kind kind, int worker, pid_t pid, int status);

  const GuardianSpec& spec_;
  const int control_;
  net::Fd child_died_;      // signalfd
  net::Fd exec_failed_[2];  // pipe: a worker that could not exec says so
  std::vector<Worker> workers_;
  int running_ = 0;
  bool childless_ = false;  // nothing at all is left below
  bool launcher_gone_ = false;
  bool stopping_ = false;
  Clock::time_point kill_at_{}, give_up_at_{};
};

}  // namespace trireme::launch

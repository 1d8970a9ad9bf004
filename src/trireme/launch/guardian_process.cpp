#include "trireme/launch/guardian_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "trireme/launch/process_tree.h"
#include "trireme/launch/signals.h"

namespace trireme::launch {
namespace {

constexpr auto kBetweenSweeps = std::chrono::milliseconds(5);
constexpr auto kSweepAtMost = std::chrono::seconds(5);  // a process in the kernel's hands cannot be killed at once

struct ExecFailure {
  int worker;
  int error;
};

void close_all_but(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned from = 3;  // 0, 1 and 2 are handled by name
  for (int fd : keep) {
    if (fd < static_cast<int>(from)) continue;
    if (fd > static_cast<int>(from)) ::syscall(SYS_close_range, from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  ::syscall(SYS_close_range, from, UINT_MAX, 0);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const auto& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

void GuardianProcess::run() {
  set_up();
  start_workers();
  while (!childless_) {
    wait_for_news();
    reap();
    // Workers ended but left something running: it gets the same notice.
    if (!childless_ && running_ == 0 && !stopping_) begin_stop(spec_.grace);
    kill_if_due();
  }
  ::_exit(0);
}

void GuardianProcess::set_up() {
  ::setpgid(0, 0);  // out of reach of Ctrl-C and of a kill of the launcher's group
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "guardian");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would reap for us and lose the statuses

  std::vector<int> keep{control_};
  for (const auto& worker : spec_.workers) {
    keep.insert(keep.end(), {worker.in, worker.out, worker.err, worker.network});
    keep.insert(keep.end(), worker.keep.begin(), worker.keep.end());
  }
  close_all_but(keep);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  child_died_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  int ends[2];
  if (!child_died_ || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) ::_exit(1);
  exec_failed_[0].reset(ends[0]);
  exec_failed_[1].reset(ends[1]);
}

void GuardianProcess::start_workers() {
  pid_t self = ::getpid();
  workers_.resize(spec_.workers.size());
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    // No ChildProcess: reap() waits for any child, adopted ones too, and a worker gets limits, cores and signals back.
    pid_t pid = ::fork();
    if (pid == 0) become_worker(spec_.workers[i], static_cast<int>(i), self);
    if (pid < 0) {
      report(GuardianEvent::Kind::exec_failed, static_cast<int>(i), -1, errno);
      begin_stop(Duration::zero());
      break;
    }
    ::setpgid(pid, pid);  // here and in the child: whichever comes first
    workers_[i] = {pid, true};
    ++running_;
  }
  // From now on only the workers hold their pipes, so that these end with them.
  close_all_but({control_, child_died_.get(), exec_failed_[0].get(), exec_failed_[1].get()});
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

void GuardianProcess::become_worker(const WorkerStart& start, int index, pid_t guardian) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guardian) ::_exit(1);  // it died before the line above
  if (start.in >= 0) ::dup2(start.in, 0);
  if (start.out >= 0) ::dup2(start.out, 1);
  if (start.err >= 0) ::dup2(start.err, 2);
  for (int fd : start.keep) ::fcntl(fd, F_SETFD, 0);
  ::setrlimit(RLIMIT_NOFILE, &spec_.open_files);
  ::sigprocmask(SIG_SETMASK, &spec_.signal_mask, nullptr);
  if (start.cores) ::sched_setaffinity(0, sizeof *start.cores, &*start.cores);
  if (start.network < 0 || ::setns(start.network, CLONE_NEWNET) == 0) {
    ::execve(spec_.program.c_str(), pointers(spec_.arguments).data(), pointers(start.environment).data());
  }
  ExecFailure failure{index, errno};
  (void)!::write(exec_failed_[1].get(), &failure, sizeof failure);
  ::_exit(127);
}

void GuardianProcess::wait_for_news() {
  pollfd wait[2] = {{child_died_.get(), POLLIN, 0}, {launcher_gone_ ? -1 : control_, POLLIN, 0}};
  int timeout = -1;
  if (stopping_) {
    auto rest = std::chrono::ceil<std::chrono::milliseconds>(kill_at_ - Clock::now()).count();
    timeout = static_cast<int>(std::max<std::int64_t>(rest, 0));
  }
  ::poll(wait, 2, timeout);
  signalfd_siginfo info;
  while (::read(child_died_.get(), &info, sizeof info) > 0) {
  }
  if (wait[1].revents != 0) obey();
}

void GuardianProcess::obey() {
  GuardianOrder order;
  while (true) {
    ssize_t got = ::recv(control_, &order, sizeof order, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != static_cast<ssize_t>(sizeof order)) {
      launcher_gone_ = true;
      begin_stop(Duration::zero());
      return;
    }
    if (order.kind == GuardianOrder::Kind::stop) {
      begin_stop(Duration(order.grace_ns));
    } else if (order.kind == GuardianOrder::Kind::kill) {
      const auto& worker = workers_[static_cast<std::size_t>(order.number)];
      if (worker.running) ::kill(-worker.pid, SIGKILL);
    } else {
      signal_workers(order.number);
      if (ends_programs(order.number)) signal_workers(SIGCONT);  // who stands still hears it, too
    }
  }
}

void GuardianProcess::reap() {
  while (true) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) childless_ = true;  // ECHILD: and as we adopt every orphan, there is nothing further down
    if (pid <= 0) return;
    reap(pid, status);
  }
}

void GuardianProcess::reap(pid_t pid, int status) {
  auto worker = std::find_if(workers_.begin(), workers_.end(), [&](auto& w) { return w.running && w.pid == pid; });
  if (worker == workers_.end()) return;  // an orphan
  const int index = static_cast<int>(worker - workers_.begin());
  if (WIFSTOPPED(status)) return report(GuardianEvent::Kind::stopped, index, pid, WSTOPSIG(status));
  if (WIFCONTINUED(status)) return report(GuardianEvent::Kind::continued, index, pid, 0);
  worker->running = false;
  --running_;
  report_exec_failures();
  report(GuardianEvent::Kind::exited, index, pid, status);
}

void GuardianProcess::report_exec_failures() {
  ExecFailure failure;
  while (::read(exec_failed_[0].get(), &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure)) {
    report(GuardianEvent::Kind::exec_failed, failure.worker, workers_[failure.worker].pid, failure.error);
  }
}

void GuardianProcess::signal_workers(int number) {
  // Only groups whose leader we have not reaped: their number cannot have passed to a stranger.
  for (const auto& worker : workers_) {
    if (worker.running) ::kill(-worker.pid, number);
  }
}

void GuardianProcess::begin_stop(Duration grace) {
  auto now = Clock::now();
  auto at = now + grace;
  if (stopping_) {
    kill_at_ = std::min(kill_at_, at);
    return;
  }
  stopping_ = true;
  kill_at_ = at;
  give_up_at_ = at + kSweepAtMost;
  if (grace <= Duration::zero()) return;
  if (running_ > 0) {
    signal_workers(SIGTERM);
    signal_workers(SIGCONT);
  } else {
    signal_descendants(::getpid(), SIGTERM);
    signal_descendants(::getpid(), SIGCONT);
  }
}

void GuardianProcess::kill_if_due() {
  if (!stopping_ || childless_ || Clock::now() < kill_at_) return;
  signal_workers(SIGKILL);
  auto refused = signal_descendants(::getpid(), SIGKILL);
  kill_at_ = Clock::now() + kBetweenSweeps;  // again, for what was started meanwhile
  auto left = descendants(::getpid());
  bool hopeless = !refused.empty() && refused.size() == left.size();  // all of them another user's
  if (!hopeless && Clock::now() < give_up_at_) return;
  for (pid_t pid : left) report(GuardianEvent::Kind::unkillable, -1, pid, hopeless ? EPERM : EBUSY);
  ::_exit(0);
}

void GuardianProcess::report(GuardianEvent::Kind kind, int worker, pid_t pid, int status) {
  GuardianEvent event{kind, worker, pid, status};
  (void)!::send(control_, &event, sizeof event, MSG_NOSIGNAL);
}

}  // namespace trireme::launch

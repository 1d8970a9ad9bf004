#include "trireme/launch/guardian.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/launch/guardian_process.h"
#include "trireme/launch/process_tree.h"

namespace trireme::launch {

Guardian::Guardian(const GuardianSpec& spec) : strangers_(own_children()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("cannot make the socket to the guardian process: {}", std::strerror(errno)));
  }
  control_.reset(ends[0]);
  net::Fd theirs(ends[1]);
  ::prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = ::fork();  // no ChildProcess: it runs no other program, but goes on in this one
  if (pid_ == 0) GuardianProcess(spec, theirs.release()).run();
  if (pid_ < 0) throw Error(fmt::format("cannot start the guardian process: {}", std::strerror(errno)));
}

Guardian::~Guardian() {
  control_.reset();
  go_on();
  collect();
  ::prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_);
}

void Guardian::collect() {
  if (pid_ <= 0) return;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ended_ = true;
  died_ = !WIFEXITED(status);
  if (died_) sweep_orphans();
}

// Ends with a look that finds no child of ours at all: one that was just reaped may have left a child of its own, which
// that same look still saw below it.
void Guardian::sweep_orphans() {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    signal_descendants(::getpid(), SIGKILL, strangers_);
    bool found = false;
    for (pid_t child : own_children()) {
      if (std::find(strangers_.begin(), strangers_.end(), child) != strangers_.end()) continue;
      ::waitpid(child, nullptr, WNOHANG);
      found = true;
    }
    if (!found) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::optional<GuardianEvent> Guardian::next() {
  if (ended_) return std::nullopt;
  GuardianEvent event;
  ssize_t got = ::recv(control_.get(), &event, sizeof event, MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof event)) return event;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  collect();
  return std::nullopt;
}

// A guardian that is gone makes these fail; next() finds out.
void Guardian::signal(int number) {
  GuardianOrder order{GuardianOrder::Kind::signal, number, 0};
  (void)!::send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

void Guardian::go_on() {
  siginfo_t stopped{};
  const bool is = pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WNOHANG) == 0;
  if (is && stopped.si_pid == pid_) ::kill(pid_, SIGCONT);
}

void Guardian::kill(int worker) {
  GuardianOrder order{GuardianOrder::Kind::kill, worker, 0};
  (void)!::send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

void Guardian::stop(Duration grace) {
  GuardianOrder order{GuardianOrder::Kind::stop, 0, grace.count()};
  (void)!::send(control_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

}  // namespace trireme::launch

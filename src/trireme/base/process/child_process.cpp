#include "trireme/base/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "trireme/base/error.h"

namespace trireme {
namespace {

// In the child, after fork(): only what is safe there.
[[noreturn]] void become(char* const* argv, const ChildStart& start, int trouble, pid_t parent) {
  if (start.own_group) ::setpgid(0, 0);
  if (start.when_we_end != 0) ::prctl(PR_SET_PDEATHSIG, start.when_we_end);
  bool ready =
      ::getppid() == parent && (start.network_namespace < 0 || ::setns(start.network_namespace, CLONE_NEWNET) == 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int ends[] = {start.in, start.out, start.err};
  for (int fd = 0; fd < 3; ++fd) {
    const int end = ends[fd] == ChildStart::kNothing ? null : ends[fd];
    ready = ready && (ends[fd] == ChildStart::kOurs || (end >= 0 && ::dup2(end, fd) == fd));
  }
  if (ready) ::execvp(argv[0], argv);
  const int error = errno;
  (void)!::write(trouble, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildStart& start)
    : own_group_(start.own_group) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int trouble[2];  // what keeps it from starting; closed by exec
  if (::pipe2(trouble, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(argv.data(), start, trouble[1], parent);
  const int failed = errno;
  ::close(trouble[1]);
  int error = 0;
  ssize_t got = 0;
  if (pid_ > 0) {
    do got = ::read(trouble[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
  }
  ::close(trouble[0]);
  if (pid_ < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(failed)));
  if (got != sizeof error) return;
  reap(0);
  throw Error(fmt::format("cannot run {}: {}", command[0], std::strerror(error)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), own_group_(other.own_group_), code_(other.code_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(code_, other.code_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) finish(Duration::zero());
}

std::optional<int> ChildProcess::reap(int options) {
  if (pid_ <= 0) return code_;
  int status = 0;
  pid_t got;
  do got = ::waitpid(pid_, &status, options);
  while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  code_ = got < 0 ? kUnknown : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  pid_ = -1;
  return code_;
}

std::optional<int> ChildProcess::ended() { return reap(WNOHANG); }

std::optional<int> ChildProcess::wait(Deadline deadline) {
  const int ending = pid_ > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  std::optional<int> code;
  while (!(code = ended()) && !deadline.passed()) {
    pollfd place{ending, POLLIN, 0};
    ::poll(&place, 1, ending >= 0 ? deadline.left_ms() : 2);
  }
  if (ending >= 0) ::close(ending);
  return code;
}

int ChildProcess::finish(Duration longest) {
  if (const auto code = wait(Deadline::in(longest))) return *code;
  signal(SIGTERM);  // a launcher takes its ranks along
  if (const auto code = wait(Deadline::in(std::chrono::seconds(2)))) return *code;
  ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
  return *reap(0);
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

}  // namespace trireme

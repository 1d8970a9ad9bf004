#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {

TemporaryFolder::TemporaryFolder() {
  std::error_code ignored;
  path_ = (std::filesystem::temp_directory_path(ignored) / "trireme-bench-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error("cannot make a folder " + path_ + ": " + std::strerror(errno) + "; set TMPDIR");
  }
}

TemporaryFolder::~TemporaryFolder() { remove_tree(path_); }

Child::Child(const Argv& command, int output_fd) {
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Error(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid_ > 0) return;
  // SIGTERM and not SIGKILL: a launcher must take its ranks along.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(output_fd, 1);
  ::dup2(output_fd, 2);
  ::execvp(argv[0], argv.data());
  ::dprintf(2, "cannot run %s: %s\n", argv[0], std::strerror(errno));
  ::_exit(127);
}

Child::~Child() {
  if (pid_ > 0) finish(Duration::zero());
}

bool Child::ended(int& status) {
  if (pid_ <= 0) return true;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

int Child::finish(Duration longest) {
  int status = 0;
  // A moment to end by itself, a moment to take its own children along, then no more.
  for (int signal : {0, SIGTERM, SIGKILL}) {
    if (signal != 0) ::kill(signal == SIGKILL ? -pid_ : pid_, signal);
    auto deadline = Deadline::in(signal == 0 ? longest : std::chrono::seconds(2));
    do {
      if (ended(status)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (!deadline.passed());
  }
  return status;
}

Output::Output() : fd_(::memfd_create("trireme-bench-output", MFD_CLOEXEC)) {
  if (fd_ < 0) throw Error(std::string("cannot make a memory file: ") + std::strerror(errno));
}

Output::~Output() { ::close(fd_); }

namespace {

// Launchers frame their messages with rulers.
bool tells(std::string_view line) { return line.find_first_not_of("-= \t\r") != line.npos; }

std::vector<std::string> telling_lines(int fd, off_t from) {
  char buffer[8192];
  ssize_t n = ::pread(fd, buffer, sizeof buffer, from);
  std::string_view text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  std::vector<std::string> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (tells(line)) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

std::string Output::first_line() const {
  const auto lines = telling_lines(fd_, 0);
  return lines.empty() ? "" : lines.front();
}

std::string Output::last_line() const {
  const auto lines = telling_lines(fd_, std::max<off_t>(0, ::lseek(fd_, 0, SEEK_END) - 8192));
  return lines.empty() ? "" : lines.back();
}

}  // namespace trireme::bench

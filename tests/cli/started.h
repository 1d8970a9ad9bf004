// Runs the program under test beside us: its output is collected while it runs, it can be signalled, and what it left
// behind is found by a mark in its environment.
#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace trireme::test {

using Clock = std::chrono::steady_clock;

struct StartOptions {
  std::string program = TRIREME_PROGRAM;
  std::map<std::string, std::string> env;
  std::string input;      // to stdin, then end of file
  bool terminal = false;  // stdin, stdout and stderr are a terminal of its own
};

class Started {
 public:
  using Options = StartOptions;
  // `trireme ARGS...`
  explicit Started(const std::vector<std::string>& args, const Options& options = {});
  // Kills it if it still runs.
  ~Started();
  Started(const Started&) = delete;

  // Its exit code, 128 + signal if it was killed; -1 when it still runs after `seconds`.
  int wait(double seconds = 10);
  // True as soon as its stdout (or, at a terminal, all output) holds `text`.
  bool wait_for_output(const std::string& text, double seconds = 10);
  // Types at its terminal.
  void type(const std::string& text);
  void kill(int signal) { ::kill(pid_, signal); }

  pid_t pid() const { return pid_; }
  double seconds() const;  // since the start, or until the end
  std::string out() const;
  std::string err() const;
  // Every process of this start that lives, itself included: those with its mark in their environment.
  std::vector<pid_t> processes() const;
  // True once no process of this start is left.
  bool wait_until_nothing_is_left(double seconds = 2) const;

 private:
  void collect(int fd, std::string& into);

  pid_t pid_ = -1;
  int code_ = -1;
  int terminal_ = -1;
  std::string mark_;
  std::chrono::steady_clock::time_point began_, ended_;
  mutable std::mutex mutex_;
  std::string out_, err_;
  std::vector<std::jthread> readers_;
};

// Starts `trireme run ARGS` and waits; `code`, `out` and `err` are what came of it.
struct Finished {
  int code;
  std::string out, err;
  double seconds;
};
Finished trireme_run(std::vector<std::string> args, const Started::Options& options = {});

std::vector<std::string> lines_of(const std::string& text);
// A command for `sh -c`, after `--`.
std::vector<std::string> with_shell(std::vector<std::string> args, const std::string& script);

template <typename Done>
bool poll_until(double seconds, Done done) {
  auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (!done()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline std::string fresh_mark() {
  static std::atomic<int> count{0};
  return fmt::format("{}-{}-{}", ::getpid(), Clock::now().time_since_epoch().count(), count++);
}

[[noreturn]] inline void become(const std::vector<std::string>& args, const StartOptions& options,
                                const std::string& mark) {
  std::vector<char*> argv{const_cast<char*>(options.program.c_str())};
  for (const auto& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  for (const char* name : {"TRIREME_KEY", "TRIREME_KEY_FILE", "TRIREME_BIND", "TRIREME_TRANSPORT", "OMP_NUM_THREADS"}) {
    ::unsetenv(name);
  }
  ::setenv("TERM", "dumb", 1);
  ::setenv("TRIREME_TEST_MARK", mark.c_str(), 1);
  for (const auto& [name, value] : options.env) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(options.program.c_str(), argv.data());
  ::_exit(99);
}

inline Started::Started(const std::vector<std::string>& args, const Options& options)
    : mark_(fresh_mark()), began_(Clock::now()), ended_(began_) {
  if (options.terminal) {
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) become(args, options, mark_);
    readers_.emplace_back([this] { collect(::dup(terminal_), out_); });
    return;
  }
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    become(args, options, mark_);
  }
  for (int fd : {in[0], out[1], err[1]}) ::close(fd);
  (void)!::write(in[1], options.input.data(), options.input.size());
  ::close(in[1]);
  readers_.emplace_back([this, fd = out[0]] { collect(fd, out_); });
  readers_.emplace_back([this, fd = err[0]] { collect(fd, err_); });
}

inline Started::~Started() {
  if (code_ < 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  readers_.clear();
  if (terminal_ >= 0) ::close(terminal_);
}

inline void Started::collect(int fd, std::string& into) {
  char buffer[1 << 16];
  while (true) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a terminal ends with EIO
    std::lock_guard lock(mutex_);
    into.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
}

inline int Started::wait(double seconds) {
  if (code_ >= 0) return code_;
  int status = 0;
  if (!poll_until(seconds, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
  ended_ = Clock::now();
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // All that wrote to the pipes is gone, or the test is about just that.
  if (wait_until_nothing_is_left()) readers_.clear();
  return code_;
}

inline bool Started::wait_for_output(const std::string& text, double seconds) {
  return poll_until(seconds, [&] { return out().find(text) != std::string::npos; });
}

inline void Started::type(const std::string& text) { (void)!::write(terminal_, text.data(), text.size()); }

inline double Started::seconds() const {
  return std::chrono::duration<double>((code_ >= 0 ? ended_ : Clock::now()) - began_).count();
}

inline std::string Started::out() const {
  std::lock_guard lock(mutex_);
  return out_;
}

inline std::string Started::err() const {
  std::lock_guard lock(mutex_);
  return err_;
}

inline std::vector<pid_t> Started::processes() const {
  std::vector<pid_t> found;
  std::string entry = "TRIREME_TEST_MARK=" + mark_ + '\0';
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    std::string name = folder.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(folder.path() / "environ", std::ios::binary);
    std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(entry) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

inline bool Started::wait_until_nothing_is_left(double seconds) const {
  return poll_until(seconds, [&] { return processes().empty(); });
}

inline Finished trireme_run(std::vector<std::string> args, const Started::Options& options) {
  args.insert(args.begin(), "run");
  Started program(args, options);
  int code = program.wait();
  return {code, program.out(), program.err(), program.seconds()};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> with_shell(std::vector<std::string> args, const std::string& script) {
  args.insert(args.end(), {"--", "sh", "-c", script});
  return args;
}

}  // namespace trireme::test

#include "trireme/base/process/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/process/child_process.h"

namespace trireme {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_from();
    close_into();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int from() const { return ends_[0]; }
  int into() const { return ends_[1]; }
  void close_from() { close_end(ends_[0]); }
  void close_into() { close_end(ends_[1]); }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  int ends_[2];
};

void keep_last_line(std::string& last, std::string& partial, std::string_view bytes) {
  partial += bytes;
  for (std::size_t end; (end = partial.find('\n')) != std::string::npos; partial.erase(0, end + 1)) {
    if (end > 0) last = partial.substr(0, end);
  }
}

class Running {
 public:
  Running(const std::vector<std::string>& command, const StopRequest* stop, const ChildWatch& watch)
      : stop_(stop), watch_(watch), process_(command, {.out = out_.into(), .err = err_.into()}) {
    for (Pipe* pipe : {&out_, &err_}) pipe->close_into();
  }

  Child finish() {
    bool ended = false;
    while (!ended) {
      pass_signals();
      const auto code = process_.ended();  // before reading: what it wrote until then is in the pipes
      ended = code.has_value();
      if (ended) child_.code = *code;
      drain(ended ? 0 : out_.from() < 0 && err_.from() < 0 ? kEndingMs : kTickMs);
      if (watch_.goes_on && !ended) watch_.goes_on(now_seconds() - began_);
    }
    if (!partial_.empty()) child_.last_said = partial_;
    return std::move(child_);
  }

 private:
  static constexpr int kTickMs = 100, kEndingMs = 2;

  void pass_signals() {
    if (!stop_ || stop_->times == passed_) return;
    passed_ = stop_->times;
    process_.signal(stop_->signal);
  }

  // Takes what comes within `ms`, then what is there.
  void drain(int ms) {
    while (true) {
      pollfd places[] = {{out_.from(), POLLIN, 0}, {err_.from(), POLLIN, 0}};  // a closed one is -1: not looked at
      if (::poll(places, 2, ms) <= 0) return;
      ms = 0;
      if (places[0].revents && !take(out_, false)) out_.close_from();
      if (places[1].revents && !take(err_, true)) err_.close_from();
    }
  }

  bool take(Pipe& pipe, bool said) {
    char buffer[1 << 14];
    ssize_t got = ::read(pipe.from(), buffer, sizeof buffer);
    if (got < 0) return errno == EINTR;
    std::string_view bytes(buffer, static_cast<std::size_t>(got));
    if (!said) {
      child_.output += bytes;
    } else {
      keep_last_line(child_.last_said, partial_, bytes);
      if (watch_.says && got > 0) watch_.says(bytes);
    }
    return got > 0;
  }

  const StopRequest* stop_;
  const ChildWatch& watch_;
  Pipe out_, err_;
  ChildProcess process_;
  const double began_ = now_seconds();
  std::sig_atomic_t passed_ = 0;
  Child child_;
  std::string partial_;  // of a line of stderr
};

}  // namespace

Child run_child(const std::vector<std::string>& command, const StopRequest* stop, const ChildWatch& watch) {
  return Running(command, stop, watch).finish();
}

}  // namespace trireme

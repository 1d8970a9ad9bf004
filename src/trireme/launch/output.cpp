#include "trireme/launch/output.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace trireme::launch {
namespace {

constexpr auto kShowUnfinishedAfter = std::chrono::milliseconds(300);
constexpr std::size_t kLongestLine = 1 << 20;  // a longer one is shown in pieces
constexpr std::size_t kMostBacklog = 1 << 20;  // beyond it the workers wait

bool same_file(int a, int b) {
  struct stat x {
  }, y{};
  return ::fstat(a, &x) == 0 && ::fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_colour == nullptr || *no_colour == 0) && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

std::string prefix_of(int rank, bool colour) {
  constexpr std::array kColours{36, 33, 35, 32, 34, 96, 93, 95, 92, 94};
  if (!colour) return fmt::format("[{}] ", rank);
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", kColours[static_cast<std::size_t>(rank) % kColours.size()], rank);
}

}  // namespace

OutputMux::OutputMux(EventLoop& loop, Output output, Capture capture, std::function<void(int)> broken)
    : loop_(loop), output_(output), capture_(std::move(capture)), broken_(std::move(broken)) {
  stdout_.reset(new Target{{loop, 1}});
  if (!same_file(1, 2)) stderr_.reset(new Target{{loop, 2}});
  for (auto* target : {stdout_.get(), stderr_.get()}) {
    if (target != nullptr) target->outlet.on_drained([this] { resume(); });
  }
}

OutputMux::~OutputMux() {
  if (timer_armed_) loop_.cancel(timer_);
  for (auto& stream : streams_) {
    if (stream.watched) loop_.forget(stream.pipe.get());
  }
}

void OutputMux::add(int rank, bool is_stderr, net::Fd pipe) {
  Target& to = target(is_stderr);
  bool prefixed = output_ == Output::prefix;
  streams_.push_back(Stream{rank, is_stderr, std::move(pipe), &to,
                            prefixed ? prefix_of(rank, to.outlet.is_terminal() && wants_colour()) : ""});
  watch(streams_.back());
}

void OutputMux::watch(Stream& stream) {
  stream.watched = true;
  loop_.watch(stream.pipe.get(), EPOLLIN, [this, &stream](std::uint32_t) {
    read_some(stream);
    if (stream.watched && stream.target->outlet.backlog() > kMostBacklog) {
      loop_.forget(stream.pipe.get());
      stream.watched = false;
    }
  });
}

void OutputMux::resume() {
  for (auto* target : {stdout_.get(), stderr_.get()}) {
    if (target == nullptr || target->outlet.error() == 0 || said_broken_) continue;
    said_broken_ = true;
    broken_(target->outlet.error());
  }
  for (auto& stream : streams_) {
    if (stream.pipe && !stream.watched) watch(stream);
  }
}

bool OutputMux::read_some(Stream& stream) {
  std::array<char, 1 << 16> buffer;
  ssize_t got = ::read(stream.pipe.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got > 0) {
    take(stream, {buffer.data(), static_cast<std::size_t>(got)});
    return true;
  }
  close(stream);
  return false;
}

void OutputMux::take(Stream& stream, std::string_view bytes) {
  if (output_ == Output::capture) return capture_(stream.rank, stream.is_stderr, bytes);
  std::string out;
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    begin_line(stream, out);
    out += stream.line;
    out += bytes.substr(0, end + 1);
    stream.line.clear();
    stream.target->line_open = false;
    bytes.remove_prefix(end + 1);
  }
  if (!out.empty()) stream.target->outlet.write(out);
  if (bytes.empty()) return;
  if (stream.line.empty()) stream.line_since = Clock::now();
  stream.line += bytes;
  if (stream.line.size() > kLongestLine) return show_unfinished(stream);
  arm_timer();
}

// Appends what must stand before the next bytes of this stream.
void OutputMux::begin_line(Stream& stream, std::string& out) {
  Target& to = *stream.target;
  if (to.line_open && to.open == &stream) return;
  if (to.line_open) out += '\n';
  out += stream.prefix;
  to.line_open = true;
  to.open = &stream;
}

void OutputMux::show_unfinished(Stream& stream) {
  if (stream.line.empty()) return;
  std::string out;
  begin_line(stream, out);
  out += stream.line;
  stream.line.clear();
  stream.target->outlet.write(out);
}

void OutputMux::close(Stream& stream) {
  show_unfinished(stream);
  Target& to = *stream.target;
  if (to.line_open && to.open == &stream && output_ == Output::prefix) {
    to.outlet.write("\n");
    to.line_open = false;
  }
  if (stream.watched) loop_.forget(stream.pipe.get());
  stream.watched = false;
  stream.pipe.reset();
}

void OutputMux::arm_timer() {
  if (timer_armed_) return;
  timer_armed_ = true;
  timer_ = loop_.after(kShowUnfinishedAfter, [this] { show_overdue(); });
}

void OutputMux::show_overdue() {
  timer_armed_ = false;
  auto now = Clock::now();
  for (auto& stream : streams_) {
    if (stream.line.empty()) continue;
    if (now - stream.line_since >= kShowUnfinishedAfter) {
      show_unfinished(stream);
    } else {
      arm_timer();
    }
  }
}

void OutputMux::say(std::string_view line) {
  Target& to = target(true);
  to.outlet.write(fmt::format("{}{}\n", to.line_open ? "\n" : "", line));
  to.line_open = false;
}

void OutputMux::drain() {
  for (auto& stream : streams_) {
    while (stream.pipe && read_some(stream)) {
    }
    if (stream.pipe) close(stream);  // someone outside the job holds its other end
  }
}

bool OutputMux::flushed() const {
  return stdout_->outlet.backlog() == 0 && (!stderr_ || stderr_->outlet.backlog() == 0);
}

}  // namespace trireme::launch

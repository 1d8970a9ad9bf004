// Brings the workers' output together: whole lines, begun by their rank, never one inside another.
//
// A line that does not end for a while (a prompt, a progress bar) is shown as far as it got; it then owns the screen's
// line until it ends, or until another worker speaks, which first begins a new line. Bytes are passed as they are.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "trireme/launch/event_loop.h"
#include "trireme/launch/launch.h"
#include "trireme/launch/outlet.h"

namespace trireme::launch {

class OutputMux {
 public:
  using Capture = std::function<void(int rank, bool is_stderr, std::string_view bytes)>;
  // `capture` for Output::capture. `broken` is called once, with the errno, when stdout or stderr cannot be written.
  OutputMux(EventLoop& loop, Output output, Capture capture, std::function<void(int error)> broken);
  ~OutputMux();

  // The read end of a worker's pipe, non-blocking.
  void add(int rank, bool is_stderr, net::Fd pipe);
  // A line of our own, on stderr.
  void say(std::string_view line);
  // Reads all that is still in the pipes; for when nobody can write to them any more.
  void drain();
  // True when everything went out, or cannot.
  bool flushed() const;

 private:
  struct Target;
  struct Stream {
    int rank;
    bool is_stderr;
    net::Fd pipe;
    Target* target;
    std::string prefix;
    std::string line;  // what came since the last newline
    Clock::time_point line_since{};
    bool watched = false;
  };
  // Where lines go; one for both stdout and stderr when they are the same file.
  struct Target {
    Outlet outlet;
    const Stream* open = nullptr;  // whose unfinished line is shown
    bool line_open = false;
  };

  Target& target(bool is_stderr) { return is_stderr && stderr_ ? *stderr_ : *stdout_; }
  void watch(Stream& stream);
  // False when there is nothing more for now; the stream is closed when it ended.
  bool read_some(Stream& stream);
  void take(Stream& stream, std::string_view bytes);
  void begin_line(Stream& stream, std::string& out);
  void show_unfinished(Stream& stream);
  void close(Stream& stream);
  void arm_timer();
  void show_overdue();
  void resume();

  EventLoop& loop_;
  const Output output_;
  const Capture capture_;
  const std::function<void(int)> broken_;
  bool said_broken_ = false;
  std::unique_ptr<Target> stdout_, stderr_;
  std::list<Stream> streams_;
  bool timer_armed_ = false;
  EventLoop::TimerId timer_{};
};

}  // namespace trireme::launch

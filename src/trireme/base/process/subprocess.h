// Another program, run to its end, and what it writes.
#pragma once
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Written by a signal handler, which calls note().
struct StopRequest {
  volatile std::sig_atomic_t signal = 0, times = 0;
  void note(int number) {
    signal = number;
    times = times + 1;
  }
  bool asked() const { return times > 0; }
};

struct Child {
  int code = 0;           // its exit code, or 128 + the signal that ended it
  std::string output;     // all of its stdout
  std::string last_said;  // the last line of its stderr that is not empty
};

struct ChildWatch {
  std::function<void(std::string_view bytes)> says;  // what it writes to stderr, as it comes
  std::function<void(double seconds)> goes_on;       // some times a second
};

// It runs as a ChildProcess in a group of its own, reads an empty stdin and does not outlive this process. Each signal
// noted in `stop`, where there is one, is passed on to it. Throws Error where it cannot be started.
Child run_child(const std::vector<std::string>& command, const StopRequest* stop = nullptr,
                const ChildWatch& watch = {});

}  // namespace trireme

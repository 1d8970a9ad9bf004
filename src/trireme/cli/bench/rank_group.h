// The ranks of one system under measurement, alive for the whole benchmark and asleep unless asked.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/process/child_process.h"
#include "trireme/cli/bench/wire.h"

namespace trireme::bench {

using Argv = std::vector<std::string>;

// A folder that is gone with this object, at the latest.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// stdin is empty; stdout and stderr go to `output_fd`. Made on the main thread only: it dies with that.
inline ChildProcess start_child(const Argv& command, int output_fd) {
  return ChildProcess(command, {.out = output_fd, .err = output_fd});
}

// Unnamed memory that collects what children print.
class Output {
 public:
  Output();
  Output(const Output&) = delete;
  ~Output();
  int fd() const { return fd_; }
  // The first line that tells something, for error messages; empty when there is none.
  std::string first_line() const;
  // The last, likewise.
  std::string last_line() const;

 private:
  int fd_;
};

class RankGroup {
 public:
  // `commands` make `ranks` ranks connect to `listener`.
  RankGroup(std::string name, int ranks, const std::vector<Argv>& commands, Listener& listener);
  ~RankGroup();

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  int ranks() const { return static_cast<int>(wires_.size()); }

  struct Times {
    std::vector<float> slowest_us;  // per iteration, of the rank that took longest
    double mean_us = 0;             // all iterations of the slowest rank, over their number
    std::size_t errors = 0;         // wrong elements over all ranks
  };
  struct Choice {
    std::string algorithm, transport;
  };
  Choice prepare(int what, int dtype, int op, std::size_t count, int buffers);
  // Asks for `iterations` times by any line, in `seconds` at most.
  Times timed(const std::string& line, std::size_t iterations, double seconds);
  Times burst(std::size_t warmup, std::size_t iterations, double expected_s);
  // Bytes a second, read and written, while all ranks update their buffers in place, `group` of them per iteration.
  double stream(std::size_t group, std::size_t iterations);
  void release();

 private:
  void meet(Listener& listener);
  // The answer of every rank, without its "ok".
  std::vector<std::string> ask(const std::string& line, double seconds);
  // Asks for numbers: calls `each` with a rank's times, in µs, and the other number of its answer.
  void ask_times(const std::string& line, double seconds, std::size_t iterations,
                 const std::function<void(const std::vector<float>& times, std::size_t extra)>& each);
  [[noreturn]] void fail(int rank, const std::string& why);

  std::string name_, version_;
  Output output_;
  std::vector<Wire> wires_;  // by rank; closed before the children are waited for
  std::vector<ChildProcess> children_;
};

}  // namespace trireme::bench

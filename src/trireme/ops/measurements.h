// How long the implementations of an operator took on this machine, kept in a file that its processes share.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trireme/base/mutex.h"

namespace trireme::ops {

using Times = std::map<std::string, double, std::less<>>;  // seconds by implementation

// A case is a text that says all that a time depends on: operator, shape, pass, threads, instructions. Any thread.
class Measurements {
 public:
  // Knows what the file has; empty: nothing is read or kept. One of another version has nothing.
  explicit Measurements(std::filesystem::path file = {});

  std::optional<Times> find(const std::string& of) const;
  // Keeps what was measured and returns what counts from now on: of an implementation that this or another process has
  // measured for the case before, the earlier time, so that all come to the same choice. With `afresh`, the new one.
  Times keep(const std::string& of, const Times& times, bool afresh = false);
  // One line: what was said, or that the file cannot be read or written, so that what is measured is forgotten with the
  // process. Empty if all is well.
  std::string note() const;
  void say(std::string line);

 private:
  using Cases = std::map<std::string, Times, std::less<>>;
  Cases read() const;
  void load() TRIREME_REQUIRES(mutex_);

  const std::filesystem::path file_;
  mutable Mutex mutex_;
  Cases cases_ TRIREME_GUARDED_BY(mutex_);
  std::string note_ TRIREME_GUARDED_BY(mutex_);
};

// Under cache_folder(), by the kind of CPU.
std::filesystem::path measurements_path();

}  // namespace trireme::ops

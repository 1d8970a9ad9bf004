// How long algorithms of convolution took on this machine, kept in a file beside what `trireme tune` keeps.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trireme/base/mutex.h"
#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

// What a time is of.
struct ConvCase {
  ConvShape shape;
  Pass pass = Pass::forward;
  int threads = 1;
  std::string instructions;  // as instruction_set() names them
  bool operator<(const ConvCase& other) const;
};

using ConvTimes = std::map<std::string, double, std::less<>>;  // seconds by algorithm

// May be asked and told by several threads at a time.
class ConvMeasurements {
 public:
  std::optional<ConvTimes> find(const ConvCase& of) const;
  void put(const ConvCase& of, ConvTimes times);
  std::size_t size() const;

  // Adds those of a file; one that is not there has none. Throws DataError naming file and place where it cannot be
  // read; then nothing is added.
  void load(const std::filesystem::path& file);
  // Atomic, with its folder. Throws Error naming the file and the reason.
  void save(const std::filesystem::path& file) const;

 private:
  mutable Mutex mutex_;
  std::map<ConvCase, ConvTimes> times_ TRIREME_GUARDED_BY(mutex_);
};

// Under cache_folder(), by the kind of CPU.
std::filesystem::path conv_measurements_path();

}  // namespace trireme::ops

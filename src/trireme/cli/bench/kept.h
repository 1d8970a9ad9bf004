// What a benchmark of hours has measured so far, in a file: stopped and begun again with it, it goes on from there.
#pragma once
#include <compare>
#include <map>
#include <string>

namespace trireme::bench {

// A step of one way to train, in the state that the machine was in then: a step without exchange took `alone_s`. And
// what a planner expects, which knows the profile and no state.
struct StepTimes {
  double predicted_s = 0, measured_s = 0, alone_s = 0, planned_s = 0;
};

class Kept {
 public:
  struct Key {
    std::string group, round, way;
    auto operator<=>(const Key&) const = default;
  };

  Kept() = default;  // in memory only
  // Reads what the file has, if there is one; a last line that was cut off is forgotten. Throws ConfigError with file
  // and line where it is something else, or cannot be written.
  explicit Kept(const std::string& path);

  // Null where that was not measured yet.
  const StepTimes* find(const Key& key) const;
  // In the file when this returns. Throws Error where it cannot be written.
  void add(const Key& key, const StepTimes& times);

 private:
  std::string path_;  // empty: none
  std::map<Key, StepTimes> all_;
};

}  // namespace trireme::bench

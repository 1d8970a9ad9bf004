// What a codec remembers from one message to the next, so that a run that is stopped goes on exactly.
//
//   by element   numbers that are this worker's part of a sum over all workers: what was not sent yet, velocities.
//                Others may go on with shares of their sum
//   the rest     bytes of the codec's own: thresholds, counts of draws, factors; they begin with the codec's name
#pragma once
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trireme/compress/codec.h"

namespace trireme::compress {

struct State {
  std::map<std::string, std::vector<float>> by_element;
  std::vector<std::byte> rest;  // empty where there is none
};
State state_of(Codec& codec);
// Of a codec of the same kind, for a tensor of the same size. Throws DataError that says what is missing, too many or
// no number; the codec is then as it was.
void restore(Codec& codec, const State& state);
// Whose rest this is; empty where nobody's.
std::string_view keeper_of(std::span<const std::byte> rest);

// ---- How the rest is written and read ----

class StateWriter {
 public:
  // First of all, by whoever has something to keep.
  void begin(std::string_view codec);
  template <typename T>
  void put(T value) requires std::is_arithmetic_v<T> {
    append(&value, sizeof value);
  }
  void put(std::span<const float> values) { append(values.data(), values.size_bytes()); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* from, std::size_t bytes);
  std::vector<std::byte> bytes_;
};

// Throws DataError where there is less than is asked for.
class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  void begin(std::string_view codec);
  template <typename T>
  T get() requires std::is_arithmetic_v<T> {
    T value;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  // Finite, and from `least` to `most`.
  double number(double least, double most);
  // So many, each finite. Looks at what is there before it allocates.
  std::vector<float> floats(std::size_t count);
  bool empty() const { return rest_.empty(); }
  // Throws where there is more.
  void end() const;

 private:
  std::span<const std::byte> next(std::size_t bytes);
  std::span<const std::byte> rest_;
  std::string codec_ = "a codec";
};

}  // namespace trireme::compress

// A first-in first-out queue that keeps its memory: no allocation once it has been as long as it gets.
#pragma once
#include <cstddef>
#include <vector>

namespace trireme::net {

template <typename T>
class Queue {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  void push(const T& value) {
    if (count_ == slots_.size()) grow();
    slots_[(first_ + count_++) & (slots_.size() - 1)] = value;
  }
  void pop() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --count_;
  }
  void clear() { count_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : 2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = slots_[(first_ + i) & (slots_.size() - 1)];
    slots_.swap(larger);
    first_ = 0;
  }

  std::vector<T> slots_;  // a power of two, or none
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace trireme::net

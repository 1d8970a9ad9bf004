// Cuts a workspace into arrays, each on a boundary of 64 bytes. The same code on an empty workspace counts the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::ops {

class Arena {
 public:
  Arena() = default;  // counts only: every array is null
  explicit Arena(std::span<std::byte> workspace) : begin_(workspace.data()) {}

  template <class T>
  T* take(int64_t count) {
    T* const array = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + used_);
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return array;
  }
  int64_t used() const { return used_; }  // bytes

 private:
  std::byte* begin_ = nullptr;
  int64_t used_ = 0;
};

}  // namespace trireme::ops

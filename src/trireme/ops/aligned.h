// Floats on cache lines, as kernels want them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace trireme::ops {

inline constexpr std::size_t kLine = 64;  // bytes

// Uninitialized. grow() keeps no content.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(int64_t size) { grow(size); }
  void grow(int64_t size) {
    if (size <= size_) return;
    data_.reset();
    data_.reset(
        static_cast<float*>(::operator new(static_cast<std::size_t>(size) * sizeof(float), std::align_val_t(kLine))));
    size_ = size;
  }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Delete {
    void operator()(float* it) const { ::operator delete(it, std::align_val_t(kLine)); }
  };
  std::unique_ptr<float[], Delete> data_;
  int64_t size_ = 0;
};

}  // namespace trireme::ops

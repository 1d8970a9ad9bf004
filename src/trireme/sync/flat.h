// FlatVector memory in the transport's heap, the size of a model.
#pragma once
#include <algorithm>
#include <memory>
#include <span>

#include "trireme/collective/run/communicator.h"

namespace trireme::sync {

class FlatVector {
 public:
  FlatVector() = default;
  FlatVector(Communicator& world, std::size_t count) : memory_(world.allocate<float>(count)), count_(count) {
    std::fill_n(memory_.get(), count, 0.0f);
  }
  FlatVector(Communicator& world, std::span<const float> like) : FlatVector(world, like.size()) { *this = like; }
  FlatVector& operator=(std::span<const float> values) {
    std::copy(values.begin(), values.end(), memory_.get());
    return *this;
  }

  std::span<float> span() const { return {memory_.get(), count_}; }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t i) const { return memory_[static_cast<std::ptrdiff_t>(i)]; }

 private:
  std::shared_ptr<float[]> memory_;  // as the communicator gives it
  std::size_t count_ = 0;
};

inline void copy(std::span<const float> from, std::span<float> to) { std::copy(from.begin(), from.end(), to.begin()); }

}  // namespace trireme::sync

// Pooling of f32 images, channels last, [batch][height][width][channels]: the largest or the mean of each window, and
// the gradient of the input. A window is any rectangle inside the image, so that plain, padded and adaptive pooling are
// one. Each pass reads and writes each tensor once.
//
// Runs on the team of the calling thread (parallel.h); the same bits on any number of threads.
#pragma once
#include <cstdint>
#include <vector>

namespace trireme::ops {

// The windows along one side.
class PoolSide {
 public:
  struct Range {
    int64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };

  // Of `size` pixels. Padding is outside of every window; a window that lies in it alone is refused (ConfigError).
  static PoolSide windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding);
  static PoolSide adaptive(int64_t size, int64_t outputs);

  int64_t size() const { return static_cast<int64_t>(over_.size()); }
  int64_t outputs() const { return static_cast<int64_t>(windows_.size()); }
  const Range& window(int64_t output) const { return windows_[static_cast<std::size_t>(output)]; }
  // The outputs whose windows hold the pixel; empty where none does.
  const Range& over(int64_t pixel) const { return over_[static_cast<std::size_t>(pixel)]; }
  int64_t longest() const;

 private:
  PoolSide(int64_t size, std::vector<Range> windows);

  std::vector<Range> windows_, over_;
};

struct PoolShape {
  int64_t batch = 0;
  int64_t channels = 0;
  PoolSide rows, columns;
  int64_t input_size() const { return batch * rows.size() * columns.size() * channels; }
  int64_t output_size() const { return batch * rows.outputs() * columns.outputs() * channels; }
};

// At most this many pixels of a window can be told apart in a byte.
inline constexpr int64_t kLargestMaxWindow = 255;

// The largest of each window, or 0 if that is less and `relu` asks for it: ReLU before or after the pooling, without
// its own pass. `chosen` becomes each one's place in its window, or 255 where nothing passed ReLU; of equals the first;
// a NaN is larger than all else.
void max_pool(const PoolShape& shape, const float* x, bool relu, float* y, uint8_t* chosen);
void max_pool_backward(const PoolShape& shape, const float* gradient, const uint8_t* chosen, float* dx);

// Each window's sum over `divisor`, or over its size where that is 0.
void mean_pool(const PoolShape& shape, const float* x, int64_t divisor, float* y);
void mean_pool_backward(const PoolShape& shape, const float* gradient, int64_t divisor, float* dx);

}  // namespace trireme::ops

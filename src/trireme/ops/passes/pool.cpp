#include "trireme/ops/passes/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/passes/pool_kernels.h"

namespace trireme::ops {

PoolSide::PoolSide(int64_t size, std::vector<Range> windows)
    : windows_(std::move(windows)), over_(static_cast<std::size_t>(size)) {
  for (int64_t output = 0; output < outputs(); ++output) {
    for (int64_t pixel = window(output).begin; pixel < window(output).end; ++pixel) {
      Range& range = over_[static_cast<std::size_t>(pixel)];
      if (range == Range()) range.begin = output;
      range.end = output + 1;
    }
  }
}

PoolSide PoolSide::windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  if (size < 1 || kernel < 1 || stride < 1 || padding < 0 || padding >= kernel || size + 2 * padding < kernel) {
    throw ConfigError(
        fmt::format("pooling: no windows of {} pixels, {} apart, in {} pixels padded by {}: the kernel must be larger "
                    "than the padding and fit the padded image",
                    kernel, stride, size, padding));
  }
  std::vector<Range> all;
  for (int64_t begin = -padding; begin + kernel <= size + padding; begin += stride) {
    all.push_back({std::max<int64_t>(begin, 0), std::min(begin + kernel, size)});
    if (all.back().begin >= all.back().end) {
      throw ConfigError(fmt::format("pooling: a window of {} pixels lies in the padding of {} alone", kernel, padding));
    }
  }
  return {size, std::move(all)};
}

PoolSide PoolSide::adaptive(int64_t size, int64_t outputs) {
  if (size < 1 || outputs < 1) {
    throw ConfigError(fmt::format("pooling: {} pixels cannot become {}; both must be at least 1", size, outputs));
  }
  std::vector<Range> all;
  for (int64_t k = 0; k < outputs; ++k) {
    all.push_back({k * size / outputs, ((k + 1) * size + outputs - 1) / outputs});
  }
  return {size, std::move(all)};
}

int64_t PoolSide::longest() const {
  int64_t most = 0;
  for (const Range& window : windows_) most = std::max(most, window.end - window.begin);
  return most;
}

namespace {

// body(window, place of the output) for each output of one row of one image.
template <class Body>
void each_window(const PoolShape& shape, const float* x, const Body& body) {
  const int64_t row = shape.columns.size() * shape.channels, width = shape.columns.outputs();
  parallel(shape.batch * shape.rows.outputs(), [&](int64_t line) {
    const int64_t image = line / shape.rows.outputs();
    const auto& rows = shape.rows.window(line % shape.rows.outputs());
    const float* from = x + (image * shape.rows.size() + rows.begin) * row;
    for (int64_t k = 0; k < width; ++k) {
      const auto& columns = shape.columns.window(k);
      const pool::Window window{from + columns.begin * shape.channels, row, rows.end - rows.begin,
                                columns.end - columns.begin};
      body(window, (line * width + k) * shape.channels);
    }
  });
}

// body(place of the output, rows and columns of its window, row and column of the pixel, whether it is the pixel's
// first, pixel's gradient) for each output over each pixel; pixels that no window holds become zeros.
template <class Body>
void each_pixel(const PoolShape& shape, float* dx, const Body& body) {
  const int64_t height = shape.rows.size(), width = shape.columns.size();
  parallel(shape.batch * height, [&](int64_t line) {
    const int64_t image = line / height, i = line % height;
    const auto& above = shape.rows.over(i);
    float* to = dx + line * width * shape.channels;
    for (int64_t j = 0; j < width; ++j, to += shape.channels) {
      const auto& beside = shape.columns.over(j);
      if (above.begin == above.end || beside.begin == beside.end) {
        std::fill_n(to, shape.channels, 0.0F);
        continue;
      }
      bool first = true;
      for (int64_t row = above.begin; row < above.end; ++row) {
        for (int64_t column = beside.begin; column < beside.end; ++column, first = false) {
          const int64_t output = (image * shape.rows.outputs() + row) * shape.columns.outputs() + column;
          const auto& rows = shape.rows.window(row);
          const auto& columns = shape.columns.window(column);
          body(output * shape.channels, rows, columns, i, j, first, to);
        }
      }
    }
  });
}

float part_of(int64_t divisor, int64_t pixels) { return 1.0F / static_cast<float>(divisor > 0 ? divisor : pixels); }

}  // namespace

void max_pool(const PoolShape& shape, const float* x, bool relu, float* y, uint8_t* chosen) {
  if (shape.rows.longest() * shape.columns.longest() > kLargestMaxWindow) {
    throw ConfigError(fmt::format("max pooling: windows of {} x {} pixels; at most {} are taken", shape.rows.longest(),
                                  shape.columns.longest(), kLargestMaxWindow));
  }
  each_window(shape, x, [&](const pool::Window& window, int64_t place) {
    pool::largest(window, shape.channels, relu, y + place, chosen + place);
  });
}

void max_pool_backward(const PoolShape& shape, const float* gradient, const uint8_t* chosen, float* dx) {
  each_pixel(shape, dx,
             [&](int64_t output, const PoolSide::Range& rows, const PoolSide::Range& columns, int64_t i, int64_t j,
                 bool first, float* to) {
               const int64_t place = (i - rows.begin) * (columns.end - columns.begin) + (j - columns.begin);
               pool::add_chosen(gradient + output, chosen + output, static_cast<uint8_t>(place), shape.channels, first,
                                to);
             });
}

void mean_pool(const PoolShape& shape, const float* x, int64_t divisor, float* y) {
  each_window(shape, x, [&](const pool::Window& window, int64_t place) {
    pool::mean(window, shape.channels, part_of(divisor, window.rows * window.columns), y + place);
  });
}

void mean_pool_backward(const PoolShape& shape, const float* gradient, int64_t divisor, float* dx) {
  each_pixel(shape, dx,
             [&](int64_t output, const PoolSide::Range& rows, const PoolSide::Range& columns, int64_t, int64_t,
                 bool first, float* to) {
               const int64_t pixels = (rows.end - rows.begin) * (columns.end - columns.begin);
               pool::add_scaled(gradient + output, part_of(divisor, pixels), shape.channels, first, to);
             });
}

}  // namespace trireme::ops

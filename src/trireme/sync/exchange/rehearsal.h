// How a measured bucket plan learns what exchanges cost: a few sizes are exchanged, and between them lie straight
// lines. The runtime times them (grad/timings.cpp), the simulator plays them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace trireme::sync {

struct Rehearsal {
  static constexpr std::size_t kFirst = 256, kTimes = 8;                // bytes, and by how much each is longer
  static constexpr std::size_t kLeast = 64 << 10, kLargest = 16 << 20;  // the longest, whatever the gradient is
  // The longest that is tried for a gradient of so many bytes.
  static constexpr std::size_t longest(std::size_t gradient) { return std::clamp(gradient, kLeast, kLargest); }
  // Rows of the matrix, near a square, that stands for a gradient of so many elements where codes travel.
  static constexpr std::size_t rows(std::size_t elements) {
    std::size_t rows = 1;
    while (rows * rows * 4 <= elements && elements % (rows * 2) == 0) rows *= 2;
    return rows;
  }
};

// What so many bytes take: straight lines between what was tried, the last one going on; never falling.
class RehearsedSeconds {
 public:
  // In the order of bytes.
  void add(std::size_t bytes, double seconds) {
    if (!points_.empty()) seconds = std::max(seconds, points_.back().second);
    points_.emplace_back(static_cast<double>(bytes), seconds);
  }
  std::size_t size() const { return points_.size(); }
  // At least two were tried.
  double operator()(std::size_t bytes) const {
    const double x = static_cast<double>(bytes);
    std::size_t k = 1;
    while (k + 1 < points_.size() && points_[k].first < x) ++k;
    const auto [x0, y0] = points_[k - 1];
    const auto [x1, y1] = points_[k];
    const double slope = std::max(0.0, (y1 - y0) / (x1 - x0));
    return y0 + slope * std::max(0.0, x - x0);
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace trireme::sync

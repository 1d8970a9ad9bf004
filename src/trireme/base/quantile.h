// Below which a share of some numbers lies.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace trireme {

// Of numbers in ascending order: between the two that are nearest, as a straight line; 0 of none.
inline double quantile_of_sorted(const std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace trireme

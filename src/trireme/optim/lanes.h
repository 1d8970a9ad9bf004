// A sum of many terms in sixteen parts that a vector unit adds side by side, at any width. Private to the folder.
#pragma once
#include <array>
#include <cstddef>

#include "trireme/optim/norms.h"

namespace trireme::optim {

struct Lanes {
  static constexpr std::size_t kCount = 16;
  std::array<double, kCount> sums{};

  double total() const { return tree_sum(sums); }
};

// term(i) of each i in [0, n), squared.
template <class Term>
__attribute__((always_inline)) inline double sum_of_squares(std::size_t n, const Term& term) {
  Lanes lanes;
  std::size_t i = 0;
  for (; i + Lanes::kCount <= n; i += Lanes::kCount) {
    for (std::size_t lane = 0; lane < Lanes::kCount; ++lane) {
      const double value = term(i + lane);
      lanes.sums[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    const double value = term(i);
    lanes.sums[lane] += value * value;
  }
  return lanes.total();
}

}  // namespace trireme::optim

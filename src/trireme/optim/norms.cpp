#include "trireme/optim/norms.h"

#include "trireme/optim/clones.h"
#include "trireme/optim/lanes.h"

namespace trireme::optim {

double tree_sum(std::span<const double> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  std::size_t half = (terms.size() + 1) / 2;
  return tree_sum(terms.first(half)) + tree_sum(terms.subspan(half));
}

TRIREME_CLONES
double block_square(const float* x, std::size_t n) {
  return sum_of_squares(
      n, [x](std::size_t i) __attribute__((always_inline)) { return static_cast<double>(x[i]); });
}

double block_square(const double* x, std::size_t n) {
  return sum_of_squares(n, [x](std::size_t i) { return x[i]; });
}

}  // namespace trireme::optim

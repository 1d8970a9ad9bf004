// Sums of squares for norms: over blocks of kBlock elements, added as a balanced binary tree, so that who adds a block
// changes no bit.
#pragma once
#include <cstddef>
#include <span>

namespace trireme::optim {

inline constexpr std::size_t kBlock = 4096;
double block_square(const float* x, std::size_t n);
double block_square(const double* x, std::size_t n);
double tree_sum(std::span<const double> terms);

}  // namespace trireme::optim

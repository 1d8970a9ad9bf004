// The noise of gradients, from norms of gradients of small and large batches (McCandlish, Kaplan, Amodei et al., "An
// Empirical Model of Large-Batch Training", 2018, appendix A).
//
// A gradient over b samples has E|G_b|² = |G|² + tr Σ / b. With the norms of b and of B samples both are estimated
// without bias:
//   |G|² = (B·|G_B|² − b·|G_b|²) / (B − b)        tr Σ = (|G_b|² − |G_B|²) / (1/b − 1/B)
// A single step says little; both are averaged over steps before they are divided.
#pragma once
#include <torch/torch.h>

#include <array>
#include <functional>
#include <vector>

#include "trireme/cluster/profile/profile.h"

namespace trireme::train {

class NoiseEstimate {
 public:
  // Mean squared norm over gradients of `small` samples, and of the one of `large` samples that is their mean.
  void add(double small, double small_square, double large, double large_square, double loss);
  // `batch`: samples of the large ones.
  cluster::NoiseProfile result() const;
  // Sums that may be added over workers.
  std::array<double, 4>& sums() { return sums_; }

 private:
  std::array<double, 4> sums_{};  // |G|², tr Σ, the loss, steps
  double batch_ = 0;
};

// One step's: `pieces` gradients of equal batches, and their mean, which is left in .grad for an optimizer. `backward`
// computes the gradients of the mean loss of piece k into .grad, which is empty, and returns that loss.
struct PieceNorms {
  double small_square = 0, large_square = 0, loss = 0;
};
PieceNorms norms_of(const std::vector<torch::Tensor>& parameters, int pieces,
                    const std::function<double(int piece)>& backward);

}  // namespace trireme::train

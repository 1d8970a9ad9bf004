// A model whose first pieces are replicated and whose last are split: Krizhevsky, "One weird trick for parallelizing
// convolutional neural networks", 2014.
//
// N workers run the first pieces, the convolutions, on their own samples; all gather what the last of them gives, and
// each computes its part of every later piece for everyone's samples: N times the samples, an Nth of the width.
#pragma once
#include <span>

#include "trireme/mesh/choice/mesh_choice.h"

namespace trireme::mesh {

struct HybridStep {
  double step_s = 0;
  double gathered_s = 0;   // activations there and their gradients back
  double inside_s = 0;     // exchanged inside the split pieces
  double gradients_s = 0;  // of the replicated pieces, all-reduced
  double exposed_s = 0;    // of these: what backward does not hide
};
// Pieces and tensor costs of one worker's own samples, one of each for a piece. Throws ConfigError where no piece can
// be split, or the first can.
HybridStep hybrid_step(std::span<const PieceCost> pieces, std::span<const TensorCost> tensor, int workers,
                       const Machine& machine);

}  // namespace trireme::mesh

// Convolution of stride 1 by a transform of tiles, as an algorithm of the family.
#pragma once
#include <memory>

#include "trireme/ops/conv/conv.h"
#include "trireme/ops/conv/tiled/transform.h"

namespace trireme::ops::tiled {

class TiledConv : public ConvAlgorithm {
 public:
  Accuracy accuracy() const override { return Accuracy::winograd; }
  // Stride and dilation 1, one group, and what takes_kernel() has.
  bool takes(const ConvShape& shape, Pass pass) const override;
  OpCost cost(const ConvShape& shape, Pass pass) const override;
  void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors,
           std::span<std::byte> workspace) const override;

  // For a shape that it takes; the same one for the same shape and pass.
  virtual std::unique_ptr<Transform> transform(const ConvShape& shape, Pass pass) const = 0;

 protected:
  virtual bool takes_kernel(std::array<int64_t, 2> kernel) const = 0;
};

}  // namespace trireme::ops::tiled

// Which algorithms of convolution are worth measuring for a shape: a guess from what each counts.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/ops/conv/conv.h"

namespace trireme::ops {

inline constexpr int64_t kNoLimit = INT64_MAX;  // bytes

struct ConvPick {
  const ConvAlgorithm* algorithm = nullptr;
  double predicted = 0;  // seconds
};

// Those that take the pass within the limit, the likely fastest first, predicted for the calling thread's team. The
// reference, which needs no workspace, comes only where nothing else fits. Only classes up to `roughest` take part.
std::vector<ConvPick> guess_conv(const ConvShape& shape, Pass pass, int64_t limit = kNoLimit,
                                 Accuracy roughest = Accuracy::winograd);

}  // namespace trireme::ops

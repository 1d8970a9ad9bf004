// The steps by which attention of one head is computed, with numbers, by the functions that it runs by.
#pragma once
#include <vector>

#include "trireme/ops/attention/attention.h"
#include "trireme/ops/draw/drawing.h"

namespace trireme::ops {

// One head's; the output is what the steps, one after the other, came to.
struct AttentionDrawing {
  OpDrawing drawing;
  AttentionShape shape;
  std::vector<float> q, k, v, output;  // [length][dim]
};

inline constexpr int64_t kMostDrawnLength = 1024;
inline constexpr int64_t kMostDrawnDim = 16;

// Numbers of its own. Throws ConfigError where the sizes cannot be drawn.
AttentionDrawing draw_attention(int64_t length, int64_t dim, bool causal);

}  // namespace trireme::ops

// Gradients that lie in one flat vector go to a strategy's exchange as one bucket.
#pragma once
#include <span>
#include <vector>

#include "trireme/ps/layout.h"
#include "trireme/sync/strategy.h"

namespace trireme::sync {

// Nothing to do for a strategy that exchanges nothing in backward. `tensors` are what lies in it, in order.
inline void exchange_flat(Strategy& strategy, std::span<float> gradient, const std::vector<ps::Tensor>& tensors) {
  auto* exchange = strategy.exchange();
  if (!exchange) return;
  std::vector<Segment> segments;
  std::size_t at = 0;
  for (const auto& tensor : tensors) {
    segments.push_back({static_cast<int>(segments.size()), at, tensor.count, tensor.rows});
    at += tensor.count;
  }
  exchange->start({0, View(gradient), segments}, Turn::in_line)->wait();
}

}  // namespace trireme::sync

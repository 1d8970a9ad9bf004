// A step of a whole tensor, also by optimizers that look at its norms first.
#pragma once
#include <algorithm>
#include <cmath>

#include "trireme/optim/norms.h"
#include "trireme/optim/optimizer.h"

namespace trireme::optim {

// The tensor's elements in memory, one after the other. `layer`: of more than one dimension, so that its norms count.
// in_parallel(n, grain, f) calls f(begin, end) over parts of [0, n) of about `grain` or more. over_parts(squares) makes
// sums over a part of a tensor those over all of it, where others have the rest.
template <class Parallel, class OverParts>
void step_tensor(const Rule& rule, const Piece& all, bool layer, const Parallel& in_parallel,
                 const OverParts& over_parts) {
  constexpr std::int64_t kGrain = 32768;
  double ratio = 1;
  if (rule.measures()) {
    const std::size_t blocks = (all.n + kBlock - 1) / kBlock;
    std::vector<double> weights(blocks), others(blocks);
    constexpr auto kBlocks = kGrain / static_cast<std::int64_t>(kBlock);
    in_parallel(static_cast<std::int64_t>(blocks), kBlocks, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = static_cast<std::size_t>(begin); block < static_cast<std::size_t>(end); ++block) {
        const std::size_t at = block * kBlock;
        const Squares squares = rule.measure(all.part(at, std::min(kBlock, all.n - at)));
        weights[block] = squares.weight;
        others[block] = squares.other;
      }
    });
    if (layer) {
      std::array<double, 2> squares{tree_sum(weights), tree_sum(others)};
      over_parts(squares);
      ratio = rule.ratio(std::sqrt(squares[0]), std::sqrt(squares[1]));
    }
  }
  in_parallel(static_cast<std::int64_t>(all.n), kGrain, [&](std::int64_t begin, std::int64_t end) {
    rule.apply(all.part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), ratio);
  });
}

}  // namespace trireme::optim

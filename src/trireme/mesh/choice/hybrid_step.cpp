#include "trireme/mesh/choice/hybrid_step.h"

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme::mesh {

HybridStep hybrid_step(std::span<const PieceCost> pieces, std::span<const TensorCost> tensor, int workers,
                       const Machine& machine) {
  TRIREME_CHECK(pieces.size() == tensor.size());
  const auto split = std::ranges::find(tensor, true, &TensorCost::fully_connected);
  const auto first = static_cast<std::size_t>(split - tensor.begin());
  if (first == 0 || first == pieces.size()) {
    throw ConfigError("--hybrid alexnet: for a model of convolutions with fully-connected layers behind them");
  }
  HybridStep step;
  double backward = 0, parameters = 0;  // of the replicated pieces
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    step.step_s += pieces[k].forward_s + pieces[k].backward_s;
    if (k < first) {
      backward += pieces[k].backward_s;
      parameters += static_cast<double>(pieces[k].parameter_bytes);
    } else if (tensor[k].fully_connected) {
      step.inside_s += ring_seconds(static_cast<double>(tensor[k].communicated_bytes) * workers, workers, machine);
    }
  }
  if (workers == 1) return step;
  const double own = static_cast<double>(pieces[first - 1].output_bytes);
  step.gathered_s = 2.0 * (workers - 1) * (machine.latency_s + own / machine.bytes_per_s);
  step.gradients_s = ring_seconds(parameters, workers, machine);
  step.exposed_s = std::max(step.gradients_s / static_cast<double>(first), step.gradients_s - backward);
  step.step_s += step.gathered_s + step.inside_s + step.exposed_s;
  return step;
}

}  // namespace trireme::mesh

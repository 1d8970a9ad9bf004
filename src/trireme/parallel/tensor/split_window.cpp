#include "trireme/parallel/tensor/split_window.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/parallel/tensor/maps.h"

namespace trireme::parallel {

WindowInput window_input(const SplitRequest& request, std::int64_t dim, const Window& window, double padding) {
  const std::int64_t inputs = request.shape[dim];
  const auto sizes = sizes_for(request, window.outputs(inputs), dim == 2 ? "rows" : "columns");
  std::vector<Range> needed;
  for (const auto& outputs : ranges_of(sizes)) needed.push_back(need_of(window, outputs, inputs).inputs);
  const int rank = request.comm.rank();
  const Need own = need_of(window, ranges_of(sizes)[rank], inputs);

  const bool in_parts = request.placement.dim == dim;
  const auto have = in_parts ? ranges_of(request.placement.sizes) : std::vector<Range>{};
  const std::int64_t expected = in_parts ? request.placement.sizes[rank] : inputs;
  auto enter = in_parts ? OnTensor() : shared_input(request);
  auto rule = request.rule;
  return {[=, &comm = request.comm](const torch::Tensor& x) {
            auto whole = enter ? enter(x) : x;
            if (whole.size(dim) != expected) {
              throw ConfigError(fmt::format("tensor rule {}: was made for inputs of {} along dimension {}, not {}",
                                            rule, expected, dim, whole.size(dim)));
            }
            auto rows = enter ? whole.narrow(dim, own.inputs.begin, own.inputs.end - own.inputs.begin)
                              : halo(whole, dim, have, needed, comm);
            if (own.before == 0 && own.behind == 0) return rows;
            std::vector<std::int64_t> pads(2 * (4 - dim), 0);
            pads[pads.size() - 2] = own.before;
            pads[pads.size() - 1] = own.behind;
            return torch::constant_pad_nd(rows, pads, padding);
          },
          sizes};
}

}  // namespace trireme::parallel

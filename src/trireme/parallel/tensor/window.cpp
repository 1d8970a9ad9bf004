#include "trireme/parallel/tensor/window.h"

#include <algorithm>

namespace trireme::parallel {

Need need_of(const Window& window, const Range& outputs, std::int64_t inputs) {
  const std::int64_t first = outputs.begin * window.stride - window.padding;
  const std::int64_t last =
      (outputs.end - 1) * window.stride - window.padding + window.dilation * (window.kernel - 1) + 1;
  // Where all is padding, all of it is before or behind nothing.
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, inputs);
  const std::int64_t end = std::clamp<std::int64_t>(last, begin, inputs);
  return {{begin, end}, begin - first, last - end};
}

}  // namespace trireme::parallel

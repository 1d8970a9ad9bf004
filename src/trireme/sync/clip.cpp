#include "trireme/sync/clip.h"

#include <cmath>

#include "trireme/compress/kernels/sparse_kernels.h"

namespace trireme::sync {

void shorten(std::span<float> gradient, double most) {
  if (!(most > 0)) return;
  const double square = compress::kernels::sum_of_squares(gradient.data(), gradient.size());
  if (!(square > most * most)) return;
  const auto factor = static_cast<float>(most / std::sqrt(square));
  for (float& g : gradient) g *= factor;
}

}  // namespace trireme::sync

#include "trireme/sync/strategies/mean.h"

#include <cmath>

namespace trireme::sync {

double distance_to(Communicator& world, std::span<const float> centre, std::span<const float> x) {
  std::vector<double> square(1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double apart = static_cast<double>(x[i]) - static_cast<double>(centre[i]);
    square[0] += apart * apart;
  }
  world.all_reduce(square, Op::avg);
  return std::sqrt(square[0]);
}

double mean_of_all(Communicator& world, std::span<const float> x, std::span<float> mean) {
  world.all_reduce(x, mean, Op::avg);
  return distance_to(world, mean, x);
}

}  // namespace trireme::sync

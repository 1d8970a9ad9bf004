#include "trireme/nn/layers.h"

#include <fmt/format.h>

#include "trireme/base/error.h"

namespace trireme::nn {

double BatchNorm2dImpl::count_batch() {
  auto momentum = options.momentum();
  if (!is_training() || !options.track_running_stats()) return momentum ? *momentum : 0;
  num_batches_tracked += 1;
  return momentum ? *momentum : 1 / num_batches_tracked.item<double>();
}

torch::Tensor BatchNorm2dImpl::plain(const torch::Tensor& input) {
  _check_input_dim(input);
  const bool from_batch = is_training() || !options.track_running_stats();
  return torch::nn::functional::detail::batch_norm(input, running_mean, running_var, weight, bias, from_batch,
                                                   count_batch(), options.eps());
}

void BatchNorm2dImpl::_check_input_dim(const torch::Tensor& input) {
  if (input.dim() != 4) throw ConfigError(fmt::format("BatchNorm2d: takes 4 dimensions, not {}", input.dim()));
}

}  // namespace trireme::nn

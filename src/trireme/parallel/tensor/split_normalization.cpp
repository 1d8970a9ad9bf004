// Batch normalization of activations in parts.
//   channels  each rank has the statistics and the scale of its channels: nothing is exchanged.
//   space     each rank has rows of every channel: the sums are taken over all ranks (two all-reduces of C numbers
//             forward, two backward), and the gradients of scale and shift are summed over them.
#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/split_request.h"

namespace trireme::parallel {
namespace {

MadeSplit norm_channels(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::BatchNorm2dImpl&>(module);
  auto [enter, sizes] = part_input(request, 1);
  for (const auto& tensor : {layer.weight, layer.bias, layer.running_mean, layer.running_var}) {
    if (tensor.defined()) request.cut(tensor, {0, 1, sizes});
  }
  return std::make_shared<nn::Split>(
      nn::Split{[&layer, enter = enter](const torch::Tensor& x) { return layer.plain(enter(x)); }});
}

void update_running(nn::BatchNorm2dImpl& layer, const torch::Tensor& mean, const torch::Tensor& variance,
                    double count) {
  if (!layer.options.track_running_stats()) return;
  torch::NoGradGuard no_grad;
  const double momentum = layer.count_batch();
  layer.running_mean.mul_(1 - momentum).add_(mean, momentum);
  layer.running_var.mul_(1 - momentum).add_(variance * (count / std::max(count - 1, 1.0)), momentum);
}

torch::Tensor normalized(nn::BatchNorm2dImpl& layer, const torch::Tensor& x, double rows_share, Communicator& comm) {
  auto per_channel = [](const torch::Tensor& values) { return values.view({1, -1, 1, 1}); };
  torch::Tensor centered, variance;
  if (layer.is_training() || !layer.options.track_running_stats()) {
    const std::vector<std::int64_t> dims{0, 2, 3};
    const double count = static_cast<double>(x.numel()) / static_cast<double>(x.size(1)) / rows_share;
    auto mean = sum_both(x.sum(dims), comm) / count;
    centered = x - per_channel(mean);
    variance = sum_both(centered.square().sum(dims), comm) / count;
    update_running(layer, mean.detach(), variance.detach(), count);
  } else {
    centered = x - per_channel(layer.running_mean);
    variance = layer.running_var;
  }
  auto y = centered * per_channel(torch::rsqrt(variance + layer.options.eps()));
  if (!layer.weight.defined()) return y;
  return y * per_channel(copy_in(layer.weight, comm)) + per_channel(copy_in(layer.bias, comm));
}

MadeSplit norm_space(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::BatchNorm2dImpl&>(module);
  const auto& at = request.placement;
  if (at.dim != 2 && at.dim != 3) refuse(request, "its input is not split by space");
  const double share = static_cast<double>(at.sizes[request.comm.rank()]) / static_cast<double>(request.shape[at.dim]);
  return std::make_shared<nn::Split>(nn::Split{
      [&layer, share, &comm = request.comm](const torch::Tensor& x) { return normalized(layer, x, share, comm); }});
}

constexpr SplitKind kNormalization[] = {{"channels", norm_channels}, {"space", norm_space}};

}  // namespace

std::span<const SplitKind> normalization_kinds() { return kNormalization; }

}  // namespace trireme::parallel

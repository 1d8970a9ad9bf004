#include "trireme/grad/sync_batch_norm.h"

#include <ATen/ops/batch_norm_native.h>
#include <torch/library.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <vector>

namespace trireme::grad {
namespace {

using torch::Tensor;

// What operators take: LibTorch's own until it became the standard's.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
using MaybeTensor = std::optional<Tensor>;
#else
using MaybeTensor = c10::optional<Tensor>;
#endif

thread_local SyncBatchNorm* current = nullptr;
thread_local bool uncounted = false;

// Of each channel, over all ranks.
struct Statistics {
  Tensor mean, variance;  // f64 [channels]; the variance biased
  double count = 0;
};

std::vector<std::int64_t> all_but_channels(const Tensor& x) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

// As a factor for tensors shaped like x.
Tensor per_channel(const Tensor& values, const Tensor& x) {
  std::vector<std::int64_t> shape(x.dim(), 1);
  shape[1] = values.numel();
  return values.to(x.options()).view(shape);
}

Statistics gather_statistics(Communicator& group, const Tensor& x) {
  const std::int64_t channels = x.size(1);
  const std::int64_t block = 2 * channels + 1;
  auto mine = torch::zeros({block}, torch::kFloat64);
  const double count = uncounted ? 0 : static_cast<double>(x.numel()) / std::max<std::int64_t>(channels, 1);
  mine[block - 1] = count;
  if (count > 0) {
    auto [variance, mean] = torch::var_mean(x.detach().to(torch::kFloat32), all_but_channels(x), /*unbiased=*/false);
    mine.narrow(0, 0, channels).copy_(mean);
    mine.narrow(0, channels, channels).copy_(variance.to(torch::kFloat64) * count);
  }
  auto all = torch::zeros({group.size(), block}, torch::kFloat64);
  group.all_gather(ConstView(mine.data_ptr(), block, DType::f64), View(all.data_ptr(), all.numel(), DType::f64));

  Statistics merged{torch::zeros({channels}, torch::kFloat64), torch::zeros({channels}, torch::kFloat64), 0};
  for (int rank = 0; rank < group.size(); ++rank) {
    double n = all[rank][block - 1].item<double>();
    if (n == 0) continue;
    auto delta = all[rank].narrow(0, 0, channels) - merged.mean;
    double total = merged.count + n;
    merged.mean += delta * (n / total);
    merged.variance += all[rank].narrow(0, channels, channels) + delta * delta * (merged.count * n / total);
    merged.count = total;
  }
  merged.variance /= std::max(merged.count, 1.0);
  return merged;
}

void update_running(const Statistics& statistics, Tensor mean, Tensor variance, double momentum) {
  torch::NoGradGuard no_grad;
  if (mean.defined()) mean.mul_(1 - momentum).add_(statistics.mean.to(mean.options()), momentum);
  if (variance.defined()) {
    double unbiased = statistics.count > 1 ? statistics.count / (statistics.count - 1) : 1;
    variance.mul_(1 - momentum).add_((statistics.variance * unbiased).to(variance.options()), momentum);
  }
}

class SyncNorm : public torch::autograd::Function<SyncNorm> {
 public:
  // Layers without weights, or without running statistics, have none: LibTorch takes no undefined tensor for one.
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const MaybeTensor& maybe_weight,
                        const MaybeTensor& bias, const MaybeTensor& running_mean, const MaybeTensor& running_variance,
                        double momentum, double epsilon) {
    const Tensor weight = maybe_weight.value_or(Tensor());
    auto& group = current->group();
    auto statistics = gather_statistics(group, x);
    update_running(statistics, running_mean.value_or(Tensor()), running_variance.value_or(Tensor()), momentum);
    auto type = torch::TensorOptions().dtype(torch::kFloat32).device(x.device());
    auto mean = statistics.mean.to(type), variance = statistics.variance.to(type);
    context->save_for_backward({x, weight, mean, torch::rsqrt(statistics.variance + epsilon).to(type)});
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(&group);
    context->saved_data["count"] = statistics.count;
    context->saved_data["uncounted"] = uncounted;
    return std::get<0>(torch::native_batch_norm(x, weight, bias, mean, variance, false, 0, epsilon));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &inverse = saved[3];
    const auto& dy = gradients[0];
    auto& group = *reinterpret_cast<Communicator*>(context->saved_data["group"].toInt());
    double count = context->saved_data["count"].toDouble();
    auto normalized = (x - per_channel(saved[2], x)) * per_channel(inverse, x);
    auto dims = all_but_channels(x);
    auto sum = dy.sum(dims).to(torch::kFloat32), product = (dy * normalized).sum(dims).to(torch::kFloat32);

    auto sums = torch::cat({sum, product}).to(torch::kCPU, torch::kFloat64).contiguous();
    group.all_reduce(View(sums.data_ptr(), sums.numel(), DType::f64));
    sums /= std::max(count, 1.0);
    const std::int64_t channels = x.size(1);
    auto dx = dy.clone();
    if (!context->saved_data["uncounted"].toBool()) {  // else the statistics do not depend on x
      dx -=
          per_channel(sums.narrow(0, 0, channels), x) + normalized * per_channel(sums.narrow(0, channels, channels), x);
    }
    auto factor = weight.defined() ? inverse * weight.detach().to(inverse.options()) : inverse;
    dx *= per_channel(factor, x);
    auto like_weight = [&](const Tensor& value) { return weight.defined() ? value.to(weight.options()) : Tensor(); };
    return {dx, like_weight(product), like_weight(sum), {}, {}, {}, {}};
  }
};

Tensor batch_norm(const Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias, const MaybeTensor& running_mean,
                  const MaybeTensor& running_variance, bool training, double momentum, double epsilon, bool cudnn) {
  if (!current || !training) {
    return at::native::batch_norm(x, weight, bias, running_mean, running_variance, training, momentum, epsilon, cudnn);
  }
  return SyncNorm::apply(x, weight, bias, running_mean, running_variance, momentum, epsilon);
}

// Once per process, when first wanted. Threads without a SyncBatchNorm go on as before.
void replace_operator() {
  static const auto libraries = [] {
    std::vector<std::unique_ptr<torch::Library>> made;
    for (auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA}) {
      made.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten", key, __FILE__, __LINE__));
      made.back()->impl("batch_norm", batch_norm);
    }
    return made;
  }();
  (void)libraries;
}

Communicator group_of(Communicator& world) {
  auto group = world.split(0, world.rank());
  return std::move(*group);
}

}  // namespace

SyncBatchNorm::SyncBatchNorm(Communicator& world) : group_(group_of(world)), previous_(current) {
  replace_operator();
  current = this;
}

SyncBatchNorm::Uncounted::Uncounted() : before_(uncounted) { uncounted = true; }
SyncBatchNorm::Uncounted::~Uncounted() { uncounted = before_; }

SyncBatchNorm::~SyncBatchNorm() {
  if (current == this) current = previous_;
}

}  // namespace trireme::grad

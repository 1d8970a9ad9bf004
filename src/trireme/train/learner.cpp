#include "trireme/train/learner.h"

#include "trireme/collective/communicator_impl.h"
#include "trireme/net/inproc.h"
#include "trireme/train/strategy.h"

namespace trireme::train {
namespace {

DataParallelOptions exchange_options(const Config& config, const sync::Strategy& strategy) {
  DataParallelOptions options;
  options.compress = strategy.codes();
  options.bucket_plan = config.bucket_plan;
  options.sync_batch_norm = config.sync_batch_norm;
  options.check_finite = true;
  options.op = Op::sum;  // losses are scaled by the global batch
  if (config.exchange == "background") options.turn = sync::Turn::background;
  if (config.exchange == "inline") options.turn = sync::Turn::in_line;
  return options;
}

OptimizerOptions optimizer_options(const Config& config, const sync::Strategy& strategy) {
  return {.momentum = pace_of(config, strategy).momentum,
          .weight_decay = config.weight_decay,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon,
          .trust = config.trust};
}

// Before anything holds on to the parameters as they were.
Workload& laid_out(Workload& work, std::optional<Flat>& flat, Communicator& world, sync::Strategy& strategy) {
  if (!strategy.in_backward()) flat.emplace(*work.model, world, strategy);
  return work;
}

}  // namespace

NamedTensors Learner::parameters(torch::nn::Module& model) {
  NamedTensors found;
  for (const auto& item : model.named_parameters()) {
    if (item.value().defined() && item.value().requires_grad()) found.emplace_back(item.key(), item.value());
  }
  return found;
}

Communicator world_of_one(const Options& options) {
  return join_world(std::move(net::inproc_world(1).front()), options);
}

Learner::Learner(const Config& config, Workload workload, Communicator& world, int stream, sync::Strategy& strategy)
    : work(std::move(workload)),
      comm(strategy.in_backward() ? world : alone.emplace(world_of_one())),
      net(data_parallel(*laid_out(work, flat, world, strategy).model, comm, exchange_options(config, strategy))),
      gradients(config, work, net, comm, stream, strategy.shares_gradient() ? Scale::share : Scale::own),
      optimizer(make_optimizer(config.optimizer, parameters(*work.model), optimizer_options(config, strategy))) {}

void average_buffers(torch::nn::Module& model, Crew& crew) {
  torch::NoGradGuard no_grad;
  for (const auto& item : model.named_buffers()) {
    if (!item.value().defined() || !item.value().is_floating_point()) continue;
    auto values = item.value().detach().to(torch::kCPU, torch::kFloat64, false, true).contiguous();
    crew.sum({values.data_ptr<double>(), static_cast<std::size_t>(values.numel())});
    item.value().detach().copy_(values.div_(crew.size()));
  }
}

}  // namespace trireme::train

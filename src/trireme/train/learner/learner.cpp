#include "trireme/train/learner/learner.h"

#include <algorithm>
#include <vector>

#include "trireme/collective/run/communicator_impl.h"
#include "trireme/grad/exchange_options.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/grad/parameters.h"
#include "trireme/net/memory/inproc.h"
#include "trireme/parallel/shard/shard.h"
#include "trireme/train/learner/strategy.h"

namespace trireme::train {
namespace {

// By the strategy's own exchange; where it has none gradients stay here, in its memory where it wants them.
ExchangeOptions exchange_options(const Config& config, sync::Strategy& strategy, std::optional<FlatModel>& flat) {
  ExchangeOptions options;
  options.exchange = strategy.exchange();
  if (!options.exchange) options.stay.emplace(flat ? flat->replica().gradient : std::span<float>());
  options.bucket_plan = config.bucket_plan;
  options.sync_batch_norm = config.sync_batch_norm;
  options.check_finite = true;
  options.op = Op::sum;  // losses are scaled by the global batch
  if (config.exchange == "background") options.turn = sync::Turn::background;
  if (config.exchange == "inline") options.turn = sync::Turn::in_line;
  return options;
}

}  // namespace

NamedTensors Learner::parameters(torch::nn::Module& model) {
  NamedTensors found;
  for (const auto& [name, parameter] : grad::learning(model)) found.emplace_back(name, parameter);
  return found;
}

Communicator world_of_one(const Options& options) {
  return join_world(std::move(net::inproc_world(1).front()), options);
}

Learner::Learner(const Config& config, Workload workload, int stream, sync::Strategy& strategy, HeldModel& of_worker)
    : work(std::move(workload)), held(of_worker) {
  const auto& traits = strategy.traits();
  const auto scale = traits.shares_gradient ? Scale::share : Scale::own;
  auto& replicas = held.replicas();
  if (traits.uses_weights) flat.emplace(model(), replicas, strategy);  // before anything holds on to parameters
  auto* shards = held.shards();
  exchanged = held.exchanged();
  if (!shards) net.emplace(exchanged ? *exchanged : model(), replicas, exchange_options(config, strategy, flat));
  exchange = shards ? static_cast<GradientExchange*>(shards) : &net->gradients();
  optimizer = make_optimizer(config.optimizer, shards ? shards->shards() : parameters(model()),
                             {optimizer_options(config, pace_of(config, strategy).momentum), held.over_parts()});
  gradients = held.gradients(config, work, net ? &*net : nullptr, stream, scale);
}

void Learner::step(double lr) {
  optimizer->step(lr);
  if (!net) held.shards()->gather_weights();
}

void Learner::zero_grad() {
  exchange->zero_grad();
  if (!exchanged) return;
  for (auto& parameter : model().parameters()) parameter.mutable_grad() = torch::Tensor();
}

NamedTensors Learner::model_state() {
  if (net) return model_tensors(model());
  auto tensors = held.shards()->whole_weights(parallel::Sharded::At::rank0);
  for (const auto& item : model().named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

NamedTensors Learner::optimizer_state() {
  return net ? optimizer->state() : held.shards()->whole_state(optimizer->state(), parallel::Sharded::At::rank0);
}

Place Learner::load(RateSchedule& schedule, const LoadedCheckpoint& checkpoint, const std::string& file) {
  const auto mine = held.own_part(checkpoint);
  if (net) return restore(model(), *optimizer, schedule, mine, file);
  auto& sharded = *held.shards();
  auto whole = tensors_under(mine, kOfModel);
  torch::NoGradGuard no_grad;
  NamedTensors weights;
  std::map<std::string, torch::Tensor> buffers;
  for (const auto& item : model().named_buffers()) buffers[item.key()] = item.value();
  for (const auto& [name, tensor] : whole) {
    if (auto at = buffers.find(name); at != buffers.end()) {
      at->second.copy_(tensor);
    } else {
      weights.emplace_back(name, tensor);
    }
  }
  sharded.load_weights(weights);
  optimizer->load(sharded.shard_state(tensors_under(mine, kOfOptimizer)));
  return restore_place(schedule, mine, file);
}

void Learner::update_with(double lr) {
  if (!gradients->steps_itself()) return;
  // Each micro-batch is an update: those of a batch together move weights as far as one step of a whole batch would.
  const double part = lr / held.updates();
  gradients->update = [this, part] {
    step(part);
    zero_grad();
  };
}

void average_buffers(torch::nn::Module& model, WorkerGroup& group, Communicator* replicas) {
  torch::NoGradGuard no_grad;
  for (const auto& item : model.named_buffers()) {
    if (!item.value().defined() || !item.value().is_floating_point()) continue;
    auto values = item.value().detach().to(torch::kCPU, torch::kFloat64, false, true).contiguous();
    const std::span<double> numbers(values.data_ptr<double>(), static_cast<std::size_t>(values.numel()));
    double workers = group.size();
    if (replicas) {
      replicas->all_reduce(View(numbers));
    } else {  // of those that are left
      std::vector<double> counted(numbers.begin(), numbers.end());
      counted.push_back(1);
      group.sum(counted);
      workers = counted.back();
      std::copy_n(counted.begin(), numbers.size(), numbers.begin());
    }
    item.value().detach().copy_(values.div_(workers));
  }
}

}  // namespace trireme::train

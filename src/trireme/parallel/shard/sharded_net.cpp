#include "trireme/parallel/shard/sharded_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/grad/replicas.h"

namespace trireme {
namespace {

std::vector<grad::Parameter> listed(const nn::Named& tensors) {
  std::vector<grad::Parameter> list;
  for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
  return list;
}

const ShardedNetOptions& checked(const ShardedNetOptions& options) {
  if (options.micro_batches < 1) {
    throw ConfigError(fmt::format("shard: {} micro-batches, must be at least 1", options.micro_batches));
  }
  return options;
}

}  // namespace

ShardedNet::ShardedNet(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data,
                       const ShardedNetOptions& options)
    : data_(data), options_(checked(options)), buffers_(nn::buffers_of(model, chain, 0, chain.size())) {
  const auto buffers = listed(buffers_);
  grad::check_same_outline(data_, buffers);
  grad::broadcast_all(data_, buffers, 0);
  const parallel::StageOptions cut{
      .segment = options.segment, .recompute = options.recompute, .input_gradients = false};
  stage_ = std::make_unique<parallel::Stage>(model, chain, 0, chain.size(), cut);
  const parallel::ShardOptions how{.what = options.what,
                                   .op = Op::sum,
                                   .accumulate_whole = options.accumulate_whole,
                                   .check_finite = options.check_finite,
                                   .turn = options.turn};
  sharded_ = std::make_unique<parallel::Sharded>(units_of(*stage_), data_, how);
  stage_->set_watch(sharded_.get());
}

ShardedNet::Plan ShardedNet::agree(std::int64_t samples) {
  std::vector<std::int64_t> mine{samples}, all(data_.size());
  data_.all_gather(mine, all);
  const auto least = std::ranges::min_element(all);
  if (*least < 1) {
    throw ConfigError(
        fmt::format("shard: rank {} has no sample in this step; every worker needs at least one", least - all.begin()));
  }
  return {std::min<std::int64_t>(options_.micro_batches, *least),
          std::accumulate(all.begin(), all.end(), std::int64_t{0})};
}

double ShardedNet::step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss) {
  if (stepped_) sharded_->start_gather_weights();
  const auto plan = agree(input.size(0));
  const auto inputs = input.tensor_split(plan.micro_batches), targets = target.tensor_split(plan.micro_batches);
  double sum = 0;
  for (std::int64_t m = 0; m < plan.micro_batches; ++m) {
    auto output = stage_->forward(static_cast<int>(m), {inputs[m]}).at(0).requires_grad_();
    auto part = loss(output, targets[m]) * (static_cast<double>(inputs[m].size(0)) / plan.samples);
    part.backward();
    sum += part.item<double>();
    stage_->backward(static_cast<int>(m), {output.grad()}, m + 1 == plan.micro_batches);
  }
  sharded_->tell({static_cast<float>(sum)});
  sharded_->finish();
  stepped_ = outdated_ = true;
  return sharded_->told()[0];
}

torch::Tensor ShardedNet::evaluate(const torch::Tensor& input) {
  if (outdated_) sharded_->gather_weights();
  outdated_ = false;
  return stage_->evaluate({input}).at(0);
}

std::vector<torch::Tensor> ShardedNet::parameters() const {
  std::vector<torch::Tensor> pieces;
  for (const auto& [name, piece] : sharded_->shards()) pieces.push_back(piece);
  return pieces;
}

double ShardedNet::clip_grad_norm(double most) {
  const double norm = sharded_->grad_norm();
  if (norm > most) sharded_->scale_gradients(most / norm);
  return norm;
}

void ShardedNet::average_buffers() { parallel::average_buffers(data_, buffers_); }

ShardedNet shard(const torch::nn::Module& model, const nn::Chain& chain, Mesh& mesh, const ShardedNetOptions& options) {
  if (mesh.shape().pipe > 1) {
    throw ConfigError(
        fmt::format("shard: mesh {} has {} stages, and shard() runs a model as one; shard each stage of "
                    "a pipeline by itself",
                    mesh::to_text(mesh.shape()), mesh.shape().pipe));
  }
  return ShardedNet(model, chain, mesh.data(), options);
}

ShardedNet shard(torch::nn::Sequential model, Mesh& mesh, const ShardedNetOptions& options) {
  return shard(*model, nn::chain_of(model), mesh, options);
}

}  // namespace trireme

#include "trireme/parallel/shard/sharded_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/grad/replicas.h"
#include "trireme/parallel/pipeline/stage.h"
#include "trireme/parallel/shard/shard.h"

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

// What is not learned, on every worker as rank 0 has it.
nn::Named with_rank_0s(Communicator& data, nn::Named buffers) {
  const auto all = listed(buffers);
  grad::check_same_outline(data, all);
  grad::broadcast_all(data, all, 0);
  return buffers;
}

parallel::Sharded::At who(bool everywhere) {
  return everywhere ? parallel::Sharded::At::all_workers : parallel::Sharded::At::rank0;
}

}  // namespace

struct ShardedNet::Impl {
  Impl(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data, const ShardedNetOptions& options);

  double step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss);
  torch::Tensor evaluate(const torch::Tensor& input);
  // How many micro-batches, the same on all, and the samples of all workers together.
  struct Plan {
    std::int64_t micro_batches, samples;
  };
  Plan agree(std::int64_t samples);

  Communicator& data_;
  const ShardedNetOptions options_;
  const nn::Named buffers_;
  parallel::Stage stage_;
  parallel::Sharded sharded_;
  bool stepped_ = false;   // since the weights were gathered for a step: an optimizer has moved them
  bool outdated_ = false;  // the same, and they were not gathered for an evaluation either
};

ShardedNet::Impl::Impl(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data,
                       const ShardedNetOptions& options)
    : data_(data),
      options_(checked(options)),
      buffers_(with_rank_0s(data, nn::buffers_of(model, chain, 0, chain.size()))),
      stage_(model, chain, 0, chain.size(),
             {.segment = options.segment, .recompute = options.recompute, .input_gradients = false}),
      sharded_(units_of(stage_), data_,
               {.what = options.what,
                .op = Op::sum,
                .accumulate_whole = options.accumulate_whole,
                .check_finite = options.check_finite,
                .turn = options.turn}) {
  stage_.set_watch(&sharded_);
}

ShardedNet::Impl::Plan ShardedNet::Impl::agree(std::int64_t samples) {
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

double ShardedNet::Impl::step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss) {
  if (stepped_) sharded_.start_gather_weights();
  const auto plan = agree(input.size(0));
  const auto inputs = input.tensor_split(plan.micro_batches), targets = target.tensor_split(plan.micro_batches);
  double sum = 0;
  for (std::int64_t m = 0; m < plan.micro_batches; ++m) {
    auto output = stage_.forward(static_cast<int>(m), {inputs[m]}).at(0).requires_grad_();
    auto part = loss(output, targets[m]) * (static_cast<double>(inputs[m].size(0)) / plan.samples);
    part.backward();
    sum += part.item<double>();
    stage_.backward(static_cast<int>(m), {output.grad()}, m + 1 == plan.micro_batches);
  }
  sharded_.tell({static_cast<float>(sum)});
  sharded_.finish();
  stepped_ = outdated_ = true;
  return sharded_.told()[0];
}

torch::Tensor ShardedNet::Impl::evaluate(const torch::Tensor& input) {
  if (outdated_) sharded_.gather_weights();
  outdated_ = false;
  return stage_.evaluate({input}).at(0);
}

ShardedNet::ShardedNet(const torch::nn::Module& model, const nn::Chain& chain, Communicator& data,
                       const ShardedNetOptions& options)
    : impl_(std::make_unique<Impl>(model, chain, data, options)) {}
ShardedNet::ShardedNet(ShardedNet&&) noexcept = default;
ShardedNet::~ShardedNet() = default;

double ShardedNet::step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss) {
  return impl_->step(input, target, loss);
}
torch::Tensor ShardedNet::evaluate(const torch::Tensor& input) { return impl_->evaluate(input); }

std::vector<torch::Tensor> ShardedNet::parameters() const {
  std::vector<torch::Tensor> pieces;
  for (const auto& [name, piece] : named_parameters()) pieces.push_back(piece);
  return pieces;
}

double ShardedNet::clip_grad_norm(double most) {
  const double norm = impl_->sharded_.grad_norm();
  if (norm > most) impl_->sharded_.scale_gradients(most / norm);
  return norm;
}

void ShardedNet::average_buffers() { parallel::average_buffers(impl_->data_, impl_->buffers_); }

nn::Named ShardedNet::whole_weights(bool everywhere) { return impl_->sharded_.whole_weights(who(everywhere)); }
void ShardedNet::load_weights(const nn::Named& whole) { impl_->sharded_.load_weights(whole); }
const nn::Named& ShardedNet::named_parameters() const { return impl_->sharded_.shards(); }
nn::Named ShardedNet::whole_state(const nn::Named& of_pieces, bool everywhere) {
  return impl_->sharded_.whole_state(of_pieces, who(everywhere));
}
nn::Named ShardedNet::shard_state(const nn::Named& whole) const { return impl_->sharded_.shard_state(whole); }
const std::vector<BadGradient>& ShardedNet::bad_gradients() const { return impl_->sharded_.bad_gradients(); }
ExchangeTimes ShardedNet::times() const { return impl_->sharded_.times(); }
std::string ShardedNet::describe() const { return impl_->sharded_.describe(); }
parallel::Sharded& ShardedNet::sharded() { return impl_->sharded_; }

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

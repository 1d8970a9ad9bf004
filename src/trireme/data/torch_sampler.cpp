#include "trireme/data/torch_sampler.h"

#include <torch/torch.h>

#include <optional>

#include "trireme/data/sampler.h"

namespace trireme::data {

struct DistributedSampler::State {
  SamplerOptions options;
  std::int64_t epoch = 0, position = 0;
  bool begun = false;  // a pass has begun since the last seek
  std::optional<ShardedSampler> sampler;
};

DistributedSampler::DistributedSampler(std::size_t size, int rank, int workers, std::uint64_t seed, bool shuffle)
    : state_(std::make_shared<State>()) {
  state_->options = {
      .size = static_cast<std::int64_t>(size), .rank = rank, .workers = workers, .seed = seed, .shuffle = shuffle};
  state_->sampler.emplace(state_->options);
}

void DistributedSampler::seek(std::int64_t epoch, std::int64_t position) {
  state_->sampler->seek(epoch, position);
  state_->epoch = epoch;
  state_->position = position;
  state_->begun = false;
}

std::int64_t DistributedSampler::epoch() const { return state_->epoch; }
std::int64_t DistributedSampler::position() const { return state_->position; }

void DistributedSampler::reset(TorchOptional<std::size_t> new_size) {
  if (new_size) state_->options.size = static_cast<std::int64_t>(*new_size);
  if (state_->begun) {
    ++state_->epoch;
    state_->position = 0;
  }
  state_->begun = true;
}

TorchOptional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  auto& state = *state_;
  state.begun = true;
  if (state.options.batch != static_cast<std::int64_t>(batch_size) ||
      state.sampler->options().size != state.options.size) {
    state.options.batch = static_cast<std::int64_t>(batch_size);
    state.sampler.emplace(state.options);
  }
  state.sampler->seek(state.epoch, state.position);
  const auto share = state.sampler->next();
  if (!share) return {};
  state.position = share->position;
  if (share->indices.empty()) return {};
  return std::vector<std::size_t>(share->indices.begin(), share->indices.end());
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", torch::tensor(state_->epoch, torch::kInt64), /*is_buffer=*/true);
  archive.write("position", torch::tensor(state_->position, torch::kInt64), /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  auto epoch = torch::empty({}, torch::kInt64), position = torch::empty({}, torch::kInt64);
  archive.read("epoch", epoch, /*is_buffer=*/true);
  archive.read("position", position, /*is_buffer=*/true);
  seek(epoch.item<std::int64_t>(), position.item<std::int64_t>());
}

}  // namespace trireme::data

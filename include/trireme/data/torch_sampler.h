// The sharded sampler for the loaders of torch::data:
//   trireme::data::DistributedSampler sampler(*set.size(), world.rank(), world.size());
//   auto loader = torch::data::make_data_loader(std::move(set), sampler, 64);
//   for (int epoch = 0; epoch < epochs; ++epoch) { sampler.set_epoch(epoch); for (auto& batch : *loader) … }
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace trireme::data {

#if TORCH_VERSION_MAJOR >= 2
template <typename T>
using TorchOptional = std::optional<T>;
#else
template <typename T>
using TorchOptional = torch::optional<T>;
#endif

// A copy shares its state with the original: a loader keeps a copy, and set_epoch on yours reaches it.
class DistributedSampler final : public torch::data::samplers::Sampler<> {
 public:
  DistributedSampler(std::size_t size, int rank, int workers, std::uint64_t seed = 1, bool shuffle = true);

  // The permutation of the next pass over the loader; without it every pass has the next epoch's.
  void set_epoch(std::int64_t epoch) { seek(epoch, 0); }
  // Resume: the next pass over the loader goes on from here.
  void seek(std::int64_t epoch, std::int64_t position);
  std::int64_t epoch() const;
  // Samples of all ranks handed to loaders in this epoch; loaders with threads of their own run ahead.
  std::int64_t position() const;

  void reset(TorchOptional<std::size_t> new_size = {}) override;
  // The part of this rank of the next workers · batch_size samples; nothing at the end, or where no part is left.
  TorchOptional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared: see above
};

}  // namespace trireme::data

#include "trireme/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/data/random.h"

namespace trireme::data {

ShardedSampler::ShardedSampler(const SamplerOptions& options) : options_(options) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw ConfigError(what);
  };
  require(options.size >= 0 && options.size <= INT32_MAX,
          fmt::format("{} samples: a sampler takes 0 to {}", options.size, INT32_MAX));
  require(options.batch >= 1 && options.batch <= INT32_MAX,
          fmt::format("batch {}: must be from 1 to {}", options.batch, INT32_MAX));
  require(options.workers >= 1 && options.rank >= 0 && options.rank < options.workers,
          fmt::format("rank {} of {} workers: no such rank", options.rank, options.workers));
  require(options.micro_batch >= 0 && (options.micro_batch == 0 || options.batch % options.micro_batch == 0),
          fmt::format("batch {} is not a multiple of micro-batch {}", options.batch, options.micro_batch));
}

std::optional<Share> ShardedSampler::next() {
  const auto whole = options_.batch * options_.workers;
  const auto count = std::min(whole, options_.size - position_);
  if (count <= 0 || (options_.drop_last && count < whole)) {
    ++epoch_;
    position_ = 0;
    return std::nullopt;
  }
  if (drawn_ != epoch_ && (options_.shuffle || drawn_ < 0)) {
    order_ = permutation(options_.size, options_.seed, static_cast<std::uint64_t>(epoch_));
    if (!options_.shuffle) std::iota(order_.begin(), order_.end(), 0);
    drawn_ = epoch_;
  }
  const std::int64_t rank = epoch_ * options_.size + position_ < options_.together ? 0 : options_.rank;
  std::int64_t first = rank * count / options_.workers, last = (rank + 1) * count / options_.workers;
  if (options_.micro_batch > 0) {
    first = std::min(rank * options_.batch, count);
    last = std::min(first + options_.batch, count);
  }
  Share share{.globally = count, .epoch = epoch_, .position = position_ + count};
  share.indices.assign(order_.begin() + position_ + first, order_.begin() + position_ + last);
  position_ += count;
  return share;
}

void ShardedSampler::seek(std::int64_t epoch, std::int64_t position) {
  if (epoch < 0 || position < 0 || position > options_.size) {
    throw ConfigError(
        fmt::format("no position {} in epoch {}: the data set has {} samples", position, epoch, options_.size));
  }
  epoch_ = epoch;
  position_ = position;
}

std::int64_t ShardedSampler::steps(std::int64_t samples) const {
  const auto whole = options_.batch * options_.workers;
  return options_.drop_last ? samples / whole : (samples + whole - 1) / whole;
}

}  // namespace trireme::data

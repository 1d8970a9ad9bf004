// Which samples a rank sees at each step. An epoch is one permutation, drawn from (seed, epoch); a global step takes
// the next workers · batch samples of it and rank r gets part r, so N workers with batch b see what one sees with batch
// N·b, in the same order. The position is the number of samples all ranks have taken, so it means the same for any N.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::data {

// What one rank takes in one global step.
struct Share {
  std::vector<std::int64_t> indices;  // may be empty in the last step of an epoch
  std::int64_t globally = 0;          // samples of all ranks in this step
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch, after this step
};

struct SamplerOptions {
  std::int64_t size = 0;   // of the data set
  std::int64_t batch = 1;  // of one worker
  int rank = 0;
  int workers = 1;
  std::uint64_t seed = 1;
  bool shuffle = true;  // otherwise in the order of the data set
  // With micro-batches of m the last step is not shared out evenly: micro-batch j of a step is always its samples
  // [j·m, j·m + m), rank r has those from r·batch/m on, and the trailing ones are short or empty.
  std::int64_t micro_batch = 0;
  bool drop_last = false;  // leave out what does not fill a global step
  // Until all ranks have gone through so many samples, over epochs, every rank takes what rank 0 does.
  std::int64_t together = 0;
};

class ShardedSampler {
 public:
  // Throws ConfigError.
  explicit ShardedSampler(const SamplerOptions& options);

  // Nothing at the end of an epoch; the call after that begins the next one.
  std::optional<Share> next();
  // Goes to a position, at most the size, of an epoch, as Share told it; also one told with other workers or batch.
  void seek(std::int64_t epoch, std::int64_t position);

  std::int64_t epoch() const { return epoch_; }
  std::int64_t position() const { return position_; }
  // Steps left in this epoch, and in a whole one.
  std::int64_t steps_left() const { return steps(options_.size - position_); }
  std::int64_t steps_per_epoch() const { return steps(options_.size); }
  const SamplerOptions& options() const { return options_; }

 private:
  std::int64_t steps(std::int64_t samples) const;

  SamplerOptions options_;
  std::int64_t epoch_ = 0, position_ = 0;
  std::int64_t drawn_ = -1;  // the epoch `order_` belongs to
  std::vector<std::int64_t> order_;
};

}  // namespace trireme::data

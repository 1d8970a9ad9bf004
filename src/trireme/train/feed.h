// Which samples this worker takes next, with a pause at every mark: `marks` times an epoch, the last time at its end,
// all workers stop to see how good the model is.
//
// Workers in step take their part of each global step (data/sampler.h). Workers that go at their own pace take the next
// batch that nobody has taken, so that a slow one holds nobody up: an epoch is over when its batches are.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "trireme/data/sampler.h"
#include "trireme/train/crew.h"

namespace trireme::train {

class Feed {
 public:
  // As Crew::take.
  using Take = std::function<std::optional<std::int64_t>(const Crew::Part& part)>;

  // Without `take` workers are in step.
  Feed(const data::SamplerOptions& options, std::int64_t marks, Take take = {});
  // Goes to where a run was, by samples that all workers took in this epoch.
  void seek(std::int64_t epoch, std::int64_t position);

  // Nothing at a mark; the call after it goes on.
  std::optional<data::Share> next();

  // The next mark beyond a position of an epoch, as a position.
  std::int64_t mark_after(std::int64_t position) const;
  // Global steps: each worker has taken a batch.
  std::int64_t steps_per_epoch() const;

 private:
  // Marks of this epoch that have been passed at a position.
  std::int64_t part_at(std::int64_t position) const;
  std::int64_t batches() const;  // of an epoch, as they are dealt out
  std::int64_t batch_samples() const;
  std::int64_t end_of(std::int64_t part) const { return (batches() * (part + 1) + marks_ - 1) / marks_; }
  std::optional<data::Share> next_in_step();
  std::optional<data::Share> next_taken();

  const int workers_;
  const Take take_;
  data::ShardedSampler sampler_;
  const std::int64_t marks_;  // one for each batch of an epoch at most
  std::int64_t epoch_ = 0, part_ = 0;
  std::int64_t first_ = 0;  // batch of the part at hand, as they are taken
};

}  // namespace trireme::train

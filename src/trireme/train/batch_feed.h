// Which samples this worker takes next, with a pause at every mark: `marks` times an epoch, the last time at its end,
// all workers stop to see how good the model is.
//
// Workers in step take their part of each global step (data/sampler.h). Workers that go at their own pace take the next
// batch that nobody has taken, so that a slow one holds nobody up: an epoch is over when its batches are. At a mark all
// wait for whoever is last, so that nobody keeps batches in store before it, and who takes much longer than the others
// lets them have the last ones.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "trireme/data/sampler.h"
#include "trireme/train/group/worker_group.h"

namespace trireme::train {

class BatchFeed {
 public:
  // As WorkerGroup::take.
  using Take = std::function<std::optional<std::int64_t>(const WorkerGroup::Part& part)>;

  // Without `take` workers are in step.
  BatchFeed(const data::SamplerOptions& options, std::int64_t marks, Take take = {});
  // Goes to where a run was, by samples that all workers took in this epoch; or to the beginning of a part.
  void seek(std::int64_t epoch, std::int64_t position);
  void seek_part(std::int64_t number);
  // What is between two marks; numbers go on over epochs.
  WorkerGroup::Part part_at(std::int64_t epoch, std::int64_t position) const;

  // Nothing at a mark; the call after it goes on.
  std::optional<data::Share> next();

  // Whether the next may be taken before it is wanted.
  bool plenty() const;

  // The next mark beyond a position of an epoch, as a position.
  std::int64_t mark_after(std::int64_t position) const;
  // Global steps: each worker has taken a batch.
  std::int64_t steps_per_epoch() const;

 private:
  // Marks of this epoch that have been passed at a position.
  std::int64_t marks_before(std::int64_t position) const;
  std::int64_t batches() const;  // of an epoch, as they are dealt out
  std::int64_t batch_samples() const;
  std::int64_t end_of(std::int64_t part) const { return (batches() * (part + 1) + marks_ - 1) / marks_; }
  std::int64_t begin_of(std::int64_t part) const { return part > 0 ? end_of(part - 1) : 0; }
  std::int64_t batches_at(std::int64_t position) const { return (position + batch_samples() - 1) / batch_samples(); }
  std::optional<data::Share> next_in_step();
  std::optional<data::Share> next_taken();
  void let_others_first() const;

  const int workers_;
  const Take take_;
  data::ShardedSampler sampler_;
  const std::int64_t marks_;  // one for each batch of an epoch at most
  std::int64_t epoch_ = 0, part_ = 0;
  std::int64_t first_ = 0;  // batch of the part at hand, as they are taken
  // What this worker took last and when, in seconds; how long it has one before it asks for the next, and how many all
  // take in a second, of the last few the usual one: nobody is slow for having stood still once.
  struct Taken {
    std::int64_t number = -1;
    double at = 0, own_s = 0, rate = 0;
    void next(std::int64_t taken, double asked, double now);

   private:
    static constexpr std::size_t kFew = 5;
    std::array<double, kFew> own_{}, rates_{};
    std::size_t count_ = 0;
  } taken_;
};

}  // namespace trireme::train

// Where a run's batches come from: this worker's share of them, read ahead, with a pause at every mark.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/data/loader.h"
#include "trireme/sync/strategy.h"
#include "trireme/train/batch_feed.h"
#include "trireme/train/checkpoint/state.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

class Feeding {
 public:
  // From `place` on. Collective where workers go at their own pace. All must outlive it.
  Feeding(const Config& config, Workload& work, WorkerGroup& group, const sync::Strategy& strategy,
          data::SamplerOptions samples, const Place& place);

  // The next batch; nothing at a mark.
  std::optional<data::Item> next() { return std::exchange(mark_ahead_, false) ? std::nullopt : loader_->next(); }
  // That one and more, as many as there are learners, or as there are before the next mark.
  std::vector<data::Item> one_each(data::Item first, std::size_t learners);
  // At a mark: whether an epoch ends there; `place` moves to it. `taken`: samples of all workers since the last one,
  // where that may be short of it because they were stopped, or have made all their steps.
  bool to_mark(Place& place, std::optional<std::int64_t> taken);
  // To workers that join later: the part that begins at `place` is under way.
  void announce(const Place& place);

 private:
  WorkerGroup& group_;
  const bool own_pace_;
  const std::int64_t size_;
  std::optional<BatchFeed> feed_;  // as it was at the start; the loader has its own
  std::unique_ptr<data::Loader> loader_;
  std::int64_t from_ = 0;  // the position at the last mark
  bool mark_ahead_ = false;
};

}  // namespace trireme::train

#include "trireme/trainer/feeding.h"

#include <algorithm>

namespace trireme::train {

Feeding::Feeding(const Config& config, Workload& work, WorkerGroup& group, const sync::Strategy& strategy,
                 data::SamplerOptions samples, const Place& place)
    : group_(group), own_pace_(strategy.traits().own_pace), size_(samples.size), from_(place.position) {
  BatchFeed::Take take;
  if (own_pace_) take = [this](const WorkerGroup::Part& part) { return group_.take(part); };
  samples.together = strategy.together() * samples.batch * samples.workers;
  feed_.emplace(samples, config.evals_per_epoch, take);
  feed_->seek(place.epoch, place.position);
  if (take) group_.start_giving(feed_->part_at(place.epoch, place.position));
  announce(place);
  const auto own = std::make_shared<BatchFeed>(*feed_);
  data::LoaderOptions options{.ahead = [own] { return own->plenty(); }, .pinned = !work.device.is_cpu()};
  if (take) options.depth = 1;  // what is waiting here nobody else can take
  loader_ = std::make_unique<data::Loader>(
      work.data.train, [own] { return own->next(); }, options);
}

std::vector<data::Item> Feeding::one_each(data::Item first, std::size_t learners) {
  std::vector<data::Item> items;
  items.push_back(std::move(first));
  while (items.size() < learners && !mark_ahead_) {
    if (auto item = loader_->next()) {
      items.push_back(std::move(*item));
    } else {
      mark_ahead_ = true;
    }
  }
  return items;
}

// What a worker took that has died since nobody will see in this epoch.
bool Feeding::to_mark(Place& place, std::optional<std::int64_t> taken) {
  std::int64_t position = feed_->mark_after(from_);
  if (taken) position = std::min(position, from_ + *taken);
  const bool epoch_ends = position >= size_;
  place.position = epoch_ends ? 0 : position;
  if (epoch_ends) ++place.epoch;
  from_ = place.position;
  return epoch_ends;
}

void Feeding::announce(const Place& place) {
  if (own_pace_) group_.announce(feed_->part_at(place.epoch, place.position));
}

}  // namespace trireme::train

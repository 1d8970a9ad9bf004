#include "trireme/train/group/world_group.h"

namespace trireme::train {

void WorldGroup::sum(std::span<double> numbers) { world_.all_reduce(View(numbers)); }

void WorldGroup::start_sum(std::span<const double> numbers) {
  started_.assign(numbers.begin(), numbers.end());
  sums_.add(world_.async().all_reduce(View(std::span(started_))));
}

std::span<const double> WorldGroup::await_sum() {
  sums_.wait();
  return started_;
}

std::optional<std::int64_t> WorldGroup::take(const Part& part) {
  const MutexLock lock(mutex_);
  tickets_->begin(part.number, part.first, part.limit);
  return tickets_->take();
}

void WorldGroup::stop_giving() {
  const MutexLock lock(mutex_);
  tickets_->stop();
}

void WorldGroup::close() {
  const MutexLock lock(mutex_);
  if (tickets_) tickets_->close();
}

}  // namespace trireme::train

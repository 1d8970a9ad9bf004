#include "trireme/train/batch_feed.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/base/median.h"

namespace trireme::train {
namespace {

// Who goes at their own pace sees an epoch as one worker would, and takes some of its batches.
data::SamplerOptions dealt(data::SamplerOptions options, bool own_pace) {
  if (own_pace) {
    options.rank = 0;
    options.workers = 1;
  }
  return options;
}

}  // namespace

BatchFeed::BatchFeed(const data::SamplerOptions& options, std::int64_t marks, Take take)
    : workers_(options.workers),
      take_(std::move(take)),
      sampler_(dealt(options, static_cast<bool>(take_))),
      marks_(std::clamp<std::int64_t>(marks, 1, std::max<std::int64_t>(1, batches()))) {}

std::int64_t BatchFeed::batches() const { return sampler_.steps_per_epoch(); }

std::int64_t BatchFeed::batch_samples() const { return sampler_.options().batch * sampler_.options().workers; }

std::int64_t BatchFeed::steps_per_epoch() const { return take_ ? (batches() + workers_ - 1) / workers_ : batches(); }

std::int64_t BatchFeed::marks_before(std::int64_t position) const {
  std::int64_t done = batches_at(position), part = 0;
  while (part < marks_ - 1 && end_of(part) <= done) ++part;
  return part;
}

WorkerGroup::Part BatchFeed::part_at(std::int64_t epoch, std::int64_t position) const {
  const auto part = marks_before(position);
  return {epoch * marks_ + part, begin_of(part), batches_at(position), end_of(part)};
}

std::int64_t BatchFeed::mark_after(std::int64_t position) const {
  return std::min(end_of(marks_before(position)) * batch_samples(), sampler_.options().size);
}

void BatchFeed::seek(std::int64_t epoch, std::int64_t position) {
  sampler_.seek(epoch, position);
  epoch_ = epoch;
  part_ = marks_before(position);
  first_ = batches_at(position);
}

void BatchFeed::seek_part(std::int64_t number) {
  seek(number / marks_, 0);
  part_ = number % marks_;
  first_ = begin_of(part_);
  taken_.number = -1;
}

std::optional<data::Share> BatchFeed::next() { return take_ ? next_taken() : next_in_step(); }

std::optional<data::Share> BatchFeed::next_in_step() {
  std::int64_t done = batches() - sampler_.steps_left();
  if (part_ < marks_ - 1 && done >= end_of(part_)) {
    ++part_;
    return std::nullopt;
  }
  auto share = sampler_.next();
  if (!share) part_ = 0;
  return share;
}

void BatchFeed::Taken::next(std::int64_t taken, double asked, double now) {
  if (number >= 0) {
    const auto usual = [&](const auto& few) {
      return median({few.begin(), few.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kFew))});
    };
    own_[count_ % kFew] = asked - at;
    rates_[count_ % kFew] = static_cast<double>(taken - number) / std::max(now - at, 1e-9);
    ++count_;
    own_s = usual(own_);
    rate = usual(rates_);
  }
  number = taken;
  at = now;
}

// Until it has been used too there will be some: it waits for one step, and takes another.
bool BatchFeed::plenty() const {
  const double left = static_cast<double>(end_of(part_) - std::max(first_, taken_.number + 1));
  return !take_ || left > 2 * std::max<double>(workers_, taken_.rate * taken_.own_s);
}

// As long as it takes them to get to the end, should they be as fast as they were, and to begin what they took last.
void BatchFeed::let_others_first() const {
  constexpr double kMuchLonger = 1.5;
  if (plenty() || taken_.own_s * taken_.rate < kMuchLonger * workers_) return;
  const double since = now_seconds() - taken_.at;
  const double left = static_cast<double>(end_of(part_) - taken_.number) - taken_.rate * since;
  const double wait_s = (std::max(0.0, left) + workers_) / taken_.rate;
  if (wait_s < taken_.own_s) std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
}

std::optional<data::Share> BatchFeed::next_taken() {
  const double asked = now_seconds();
  let_others_first();
  auto number = take_({epoch_ * marks_ + part_, begin_of(part_), first_, end_of(part_)});
  if (!number) {
    taken_.number = -1;
    first_ = end_of(part_);
    if (++part_ == marks_) {
      part_ = first_ = 0;
      ++epoch_;
    }
    return std::nullopt;
  }
  taken_.next(*number, asked, now_seconds());
  sampler_.seek(epoch_, *number * batch_samples());
  auto share = sampler_.next();
  share->globally = static_cast<std::int64_t>(share->indices.size()) * workers_;
  return share;
}

}  // namespace trireme::train

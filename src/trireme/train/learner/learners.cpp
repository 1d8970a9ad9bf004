#include "trireme/train/learner/learners.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trireme::train {

Learners::Learners(const Config& config, const Workload& work, int rank, sync::Strategy& strategy, HeldModel& held)
    : config_(config), work_(work), rank_(rank), strategy_(strategy), held_(held), threads_(torch::get_num_threads()) {
  if (strategy.traits().learners == 0) tuner_.emplace();
  resize(std::max(1, strategy.traits().learners));
}

void Learners::resize(int count) {
  all_.resize(std::min(all_.size(), static_cast<std::size_t>(count)));
  while (static_cast<int>(all_.size()) < count) {
    Workload own = work_;
    if (!all_.empty()) {
      own.model = build_model(config_, work_.data.train->shape());
      own.model->to(work_.device);
    }
    // Ranks of random streams go on where workers end.
    const int stream = rank_ + held_.replicas().size() * static_cast<int>(all_.size());
    all_.push_back(std::make_unique<Learner>(config_, own, stream, strategy_, held_));
    own.model->train();
  }
  pool_.set_threads(count > 1 ? std::max(1, threads_ / count) : threads_);
}

std::vector<sync::Replica> Learners::replicas() {
  std::vector<sync::Replica> found;
  for (auto& learner : all_) {
    if (!learner->flat) {
      found.emplace_back();
      continue;
    }
    learner->flat->download();
    found.push_back(learner->flat->replica());
    if (found.size() > 1) std::ranges::copy(found[0].weights, found.back().weights.begin());
  }
  return found;
}

std::string Learners::tune(WorkerGroup& group, double samples, double seconds) {
  constexpr int kSettle = 10, kWindow = 40;  // steps
  if (!tuner_ || tuner_->settled()) return {};
  if (++steps_ <= kSettle) return {};
  rates_.push_back(samples / std::max(seconds, 1e-9));
  if (steps_ < kSettle + kWindow) return {};
  std::ranges::nth_element(rates_, rates_.begin() + kWindow / 2);  // the median: one step that was held up says nothing
  std::array rate{rates_[kWindow / 2]};
  group.sum(rate);
  steps_ = 0;
  rates_.clear();
  const auto before = all_.size();
  tuner_->window(rate[0]);
  if (static_cast<int>(before) != tuner_->learners()) {
    for (auto& learner : all_) learner->flat->download();
    resize(tuner_->learners());
    std::vector<sync::Replica> now;
    for (auto& learner : all_) now.push_back(learner->flat->replica());
    strategy_.begin(now);
    for (auto& learner : all_) learner->flat->upload();
  }
  if (!tuner_->settled()) return {};
  return fmt::format("{} learner{} per worker {} fastest", all_.size(), all_.size() == 1 ? "" : "s",
                     all_.size() == 1 ? "is" : "are");
}

}  // namespace trireme::train

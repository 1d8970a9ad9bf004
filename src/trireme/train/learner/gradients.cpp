#include "trireme/train/learner/gradients.h"

#include <array>
#include <chrono>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/base/mix.h"
#include "trireme/data/random.h"
#include "trireme/grad/autocast.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/grad/parameters.h"
#include "trireme/grad/sync_batch_norm.h"
#include "trireme/nn/dropout.h"

namespace trireme::train {
namespace {

void add(std::vector<torch::Tensor>& into, const std::vector<torch::Tensor>& from) {
  for (std::size_t k = 0; k < into.size(); ++k) {
    if (!from[k].defined()) continue;
    if (into[k].defined()) {
      into[k].add_(from[k]);
    } else {
      into[k] = from[k];
    }
  }
}

}  // namespace

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position, std::uint64_t piece) {
  for (std::uint64_t part : {epoch, position, piece}) seed = mixed(seed + part);
  return seed;
}

WholeGradients::WholeGradients(const Config& config, Workload& work, DataParallel& net, Communicator& world, int rank,
                               Scale scale)
    : config_(config),
      work_(work),
      net_(net),
      world_(world),
      rank_(rank),
      scale_(scale),
      piece_(config.micro_batch > 0 ? config.micro_batch : config.batch),
      pieces_(config.batch * config.accumulate / piece_) {
  for (const auto& parameter : grad::learning(*work.model)) parameters_.push_back(parameter.tensor);
  for (auto& item : work.model->named_buffers()) {
    if (!item.value().defined()) continue;
    if (item.value().is_floating_point()) statistics_.push_back(item.value());
    if (item.key().ends_with("num_batches_tracked")) counters_.push_back(item.value());
  }
}

StepOutcome WholeGradients::compute(const data::Item& item, bool stop, const HoldUp& hold_up) {
  totals_ = {};
  StepOutcome outcome;
  outcome.begin = now_seconds();
  config_.deterministic ? by_tree(item, stop, hold_up) : in_pieces(item, stop, hold_up);
  auto told = net_.gradients().told();
  // Alone, a share of the global mean is not yet the mean of anything.
  outcome.loss =
      net_.gradients().ranks() == 1 && item.here > 0 ? told[0] * whole(item) / static_cast<double>(item.here) : told[0];
  outcome.score = {told[1], told[2]};
  outcome.stop = told[3] > 0;
  outcome.forward_s = totals_.forward_s;
  const auto times = net_.times();
  outcome.exposed_s = times.exposed;
  outcome.communication_s = times.communication;
  outcome.backward_s = std::max(0.0, totals_.backward_s - outcome.exposed_s);
  outcome.held_up_s = totals_.held_up_s;
  usual_backward_s_ = outcome.backward_s;
  return outcome;
}

double WholeGradients::whole(const data::Item& item) const {
  return static_cast<double>(scale_ == Scale::share ? item.globally : item.here);
}

// Before the backward whose gradients leave: whoever waits for them waits longer.
void WholeGradients::linger(const HoldUp& hold_up) {
  if (!hold_up) return;
  double begin = now_seconds(), seconds = hold_up(totals_.forward_s + std::max(usual_backward_s_, totals_.backward_s));
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  totals_.held_up_s += now_seconds() - begin;
}

torch::Tensor WholeGradients::forward(const data::Item& item, std::int64_t begin, std::int64_t end,
                                      std::int64_t piece) {
  double start = now_seconds();
  nn::set_random(seed_of(config_.seed, item.epoch, item.position, rank_ * pieces_ + piece));
  bool all = begin == 0 && end == item.here;
  auto input = all ? item.batch.input : item.batch.input.narrow(0, begin, end - begin);
  auto target = all ? item.batch.target : item.batch.target.narrow(0, begin, end - begin);
  if (!work_.device.is_cpu()) {
    input = input.to(work_.device, /*non_blocking=*/true);
    target = target.to(work_.device, /*non_blocking=*/true);
  }
  torch::Tensor output;
  if (config_.autocast == "bf16") {
    Autocast autocast(work_.device.type());
    output = work_.model->forward(input).to(torch::kFloat32);
  } else {
    output = work_.model->forward(input);
  }
  auto loss = (*work_.objective.loss)(output, target) * (static_cast<double>(end - begin) / whole(item));
  totals_.loss += loss.item<double>();
  const auto score = score_of(work_.objective, output.detach(), target);
  totals_.score += score.sum;
  totals_.of += score.of;
  totals_.forward_s += now_seconds() - start;
  return loss;
}

// Told before the last backward, whose exchange carries it.
void WholeGradients::tell(bool stop) {
  net_.gradients().tell({static_cast<float>(totals_.loss), static_cast<float>(totals_.score),
                         static_cast<float>(totals_.of), stop ? 1.f : 0.f});
}

torch::Tensor WholeGradients::forward_uncounted() {
  const grad::SyncBatchNorm::Uncounted uncounted;
  const auto sample = work_.data.train->get(std::array<std::int64_t, 1>{0});
  return work_.model->forward(sample.input.to(work_.device)).to(torch::kFloat32).sum() * 0;
}

std::int64_t WholeGradients::turns(const data::Item& item) const {
  const std::int64_t most = (item.globally + world_.size() - 1) / world_.size();
  return ((config_.sync_batch_norm ? most : item.here) + piece_ - 1) / piece_;
}

void WholeGradients::in_pieces(const data::Item& item, bool stop, const HoldUp& hold_up) {
  const std::int64_t turns = this->turns(item);
  if (turns == 0) {
    tell(stop);
    net_.contribute_nothing();
    return;
  }
  for (std::int64_t piece = 0; piece < turns; ++piece) {
    const std::int64_t begin = piece * piece_, end = std::min(begin + piece_, item.here);
    auto loss = begin < end ? forward(item, begin, end, piece) : forward_uncounted();
    const bool last = piece + 1 == turns;
    if (last) linger(hold_up);
    double start = now_seconds();
    if (!last) {
      auto quiet = net_.no_sync();
      loss.backward();
    } else {
      tell(stop);
      loss.backward();
    }
    totals_.backward_s += now_seconds() - start;
  }
}

void WholeGradients::by_tree(const data::Item& item, bool stop, const HoldUp& hold_up) {
  before_.clear();
  counted_.clear();
  for (auto& statistic : statistics_) before_.push_back(statistic.clone());
  for (auto& counter : counters_) counted_.push_back(counter.clone());
  auto sums = sum(item, 0, pieces_);
  linger(hold_up);
  net_.zero_grad();
  for (std::size_t k = 0; k < parameters_.size(); ++k) parameters_[k].mutable_grad() = sums[k];
  tell(stop);
  double start = now_seconds();
  net_.exchange();
  totals_.backward_s += now_seconds() - start;
  torch::NoGradGuard no_grad;
  for (std::size_t k = 0; k < statistics_.size(); ++k) {
    auto mean = sums[parameters_.size() + k];
    auto host =
        (mean.defined() ? mean : torch::zeros_like(statistics_[k])).to(torch::kCPU, torch::kFloat32).contiguous();
    world_.all_reduce(View(host.data_ptr(), host.numel(), DType::f32));
    statistics_[k].copy_(host);
  }
  const std::int64_t seen = (item.globally + piece_ - 1) / piece_;
  for (std::size_t k = 0; k < counters_.size(); ++k) counters_[k].copy_(counted_[k] + seen);
}

// The gradients of micro-batches [low, high), and behind them the statistics; undefined where there are none.
WholeGradients::Sums WholeGradients::sum(const data::Item& item, std::int64_t low, std::int64_t high) {
  if (high - low == 1) return leaf(item, low);
  std::int64_t middle = low + (high - low) / 2;
  auto left = sum(item, low, middle);
  torch::NoGradGuard no_grad;
  auto right = [&] {
    torch::AutoGradMode grad(true);
    return sum(item, middle, high);
  }();
  add(left, right);
  return left;
}

WholeGradients::Sums WholeGradients::leaf(const data::Item& item, std::int64_t piece) {
  Sums sums(parameters_.size() + statistics_.size());
  std::int64_t begin = piece * piece_, end = std::min(begin + piece_, item.here);
  if (begin >= end) return sums;
  {
    torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < statistics_.size(); ++k) statistics_[k].copy_(before_[k]);
    for (std::size_t k = 0; k < counters_.size(); ++k) counters_[k].copy_(counted_[k]);
  }
  net_.zero_grad();
  auto loss = forward(item, begin, end, piece);
  double start = now_seconds();
  {
    auto quiet = net_.no_sync();
    loss.backward();
  }
  for (std::size_t k = 0; k < parameters_.size(); ++k) sums[k] = parameters_[k].grad();
  torch::NoGradGuard no_grad;
  double share = static_cast<double>(end - begin) / item.globally;
  for (std::size_t k = 0; k < statistics_.size(); ++k) sums[parameters_.size() + k] = statistics_[k] * share;
  totals_.backward_s += now_seconds() - start;
  return sums;
}

}  // namespace trireme::train

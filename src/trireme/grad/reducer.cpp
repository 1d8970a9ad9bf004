#include "trireme/grad/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/grad/finite.h"
#include "trireme/grad/heap_allocator.h"
#include "trireme/grad/spare_core.h"
#include "trireme/sync/exchange/compressed_mean.h"
#include "trireme/sync/exchange/done.h"
#include "trireme/sync/exchange/hook_exchange.h"
#include "trireme/sync/exchange/step_notes.h"
#include "trireme/sync/exchange/turn.h"

namespace trireme::grad {
namespace {

using enum sync::Note;  // what ranks tell each other once per exchange, in one small sum

sync::PlanChoice choice_of(const ExchangeOptions& options) {
  if (options.bucket_mb < 0) throw ConfigError(fmt::format("bucket_mb: {} is below 0", options.bucket_mb));
  return sync::parse_bucket_plan(options.bucket_mb > 0 ? fmt::format("cap:{}", options.bucket_mb)
                                                       : options.bucket_plan);
}

// A rank alone exchanges nothing, and loses by waking another thread for each bucket, unless it has to encode it.
sync::Turn turn_of(Communicator& comm, const ExchangeOptions& options) {
  if (options.stay) return sync::Turn::in_line;
  if (options.turn) return *options.turn;
  if (comm.size() == 1 && !options.hook && options.compress.rules.none()) return sync::Turn::in_line;
  return turn_for(comm, options.threads);
}

// As a matrix: its first dimension.
std::size_t rows_of(const torch::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.dim() > 0 ? std::max<std::int64_t>(tensor.size(0), 1) : 1);
}

std::unique_ptr<sync::CompressedMean> codes_for(const std::vector<Parameter>& parameters, Communicator& comm,
                                                const ExchangeOptions& options) {
  if (options.compress.rules.none()) return nullptr;
  if (options.hook || options.exchange || options.stay) {
    throw ConfigError("gradients are exchanged by somebody else, or not at all: leave out the compression");
  }
  std::vector<compress::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) {
    tensors.push_back(
        {name, static_cast<std::size_t>(tensor.numel()), rows_of(tensor), static_cast<int>(tensors.size())});
  }
  return std::make_unique<sync::CompressedMean>(comm, tensors, options.compress, options.op,
                                                options.check_finite ? sync::NotFinite::counts_as_zero  // and is told
                                                                     : sync::NotFinite::is_an_error);
}

}  // namespace

Reducer::Reducer(std::vector<Parameter> parameters, Communicator& comm, const ExchangeOptions& options)
    : comm_(comm),
      parameters_(std::move(parameters)),
      choice_(choice_of(options)),
      turn_(turn_of(comm, options)),
      threads_(options.threads),
      check_finite_(options.check_finite),
      op_(options.op),
      stays_(options.stay.has_value()),
      memory_(options.stay ? options.stay->memory : std::span<float>()),
      ranks_(stays_ ? 1 : comm.size()),
      codes_(codes_for(parameters_, comm, options)),
      own_(own_exchange(options)),
      exchange_(own_     ? own_.get()
                : codes_ ? static_cast<sync::BucketExchange*>(codes_.get())
                         : options.exchange),
      timings_(parameters_.size()),
      places_(parameters_.size()),
      born_in_heap_(parameters_.size()),
      notes_(sync::note_count(parameters_.size())) {
  order_.resize(parameters_.size());
  if (stays_) {
    std::iota(order_.begin(), order_.end(), 0);
    if (!memory_.empty()) build(order_, {order_.size()});
    return;
  }
  // Backward goes through a model from its end: until it has been seen, the best guess.
  std::iota(order_.rbegin(), order_.rend(), 0);
  build(order_, cut(order_));
}

std::unique_ptr<sync::BucketExchange> Reducer::own_exchange(const ExchangeOptions& options) const {
  if (stays_ || codes_ || options.exchange) return nullptr;
  if (options.hook) return std::make_unique<sync::HookExchange>(options.hook);
  return std::make_unique<sync::BucketAllReduce>(comm_, options.op);
}

// ---- One backward ----

bool Reducer::ready(std::size_t parameter) {
  const bool first = !running_;
  if (first) begin();
  auto& place = places_[parameter];
  if (place.ready) {
    throw Error(
        fmt::format("the gradient of '{}' was computed twice before it was exchanged: call backward() once per "
                    "exchange, the others within no_sync()",
                    parameters_[parameter].name));
  }
  place.ready = true;
  timings_.ready(parameter, now_seconds() - times_.first_ready - in_line_s_);
  take(parameter);
  hand_over_full();
  return first;
}

void Reducer::finish() {
  if (!running_) begin();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!places_[p].ready) take(p);
  }
  hand_over_full();
  double begin_wait = now_seconds();
  if (!notes_aboard()) {
    write_notes();
    if (ranks_ > 1) comm_.all_reduce(notes_);
    times_.communication = now_seconds() - begin_wait;
  }
  for (auto& open : buckets_) {
    open.pending->wait();
    auto [begin, end] = open.pending->times();
    times_.buckets.push_back(
        {open.memory->bytes(), static_cast<int>(open.memory->members().size()), open.full_at, begin, end});
    times_.communication += end - begin;
  }
  times_.exposed = in_line_s_ + now_seconds() - begin_wait;
  const float* aboard = notes_aboard();
  read_notes(aboard ? aboard : notes_.data(), aboard && op_ == Op::avg ? ranks_ : 1);
  give_results();
  running_ = false;
  timings_.end_step(steps_);
  replan_if_due();
  ++steps_;
}

void Reducer::begin() {
  running_ = true;
  next_ = 0;
  in_line_s_ = 0;
  bad_here_ = -1;
  bad_.clear();
  std::ranges::fill(notes_, 0.f);
  times_ = {};
  times_.first_ready = now_seconds();
  timings_.begin_step();
  for (auto& place : places_) place.ready = false;
  for (auto& open : buckets_) {
    open.missing = open.memory->members().size();
    open.pending.reset();
  }
}

void Reducer::take(std::size_t parameter) {
  auto& tensor = const_cast<torch::Tensor&>(parameters_[parameter].tensor);
  auto& place = places_[parameter];
  born_in_heap_[parameter] = tensor.grad().defined() && born_in_heap(tensor.grad().data_ptr());
  if (tensor.grad().defined()) {
    notes_[kUsed + parameter] = 1;
    if (check_finite_ && bad_here_ < 0 && !all_finite(tensor.grad())) bad_here_ = static_cast<int>(parameter);
  }
  if (buckets_.empty()) return;
  auto& open = buckets_[place.bucket];
  open.memory->take(tensor, place.member, born_in_heap_[parameter] != 0);
  --open.missing;
}

void Reducer::hand_over_full() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    auto& open = buckets_[next_];
    open.full_at = now_seconds();
    if (weighted_ && weight_ != 1) open.memory->scale(weight_);
    if (next_ + 1 == buckets_.size()) {
      if (float* aboard = notes_aboard()) {
        write_notes();
        std::ranges::copy(notes_, aboard);
      }
    }
    const auto bucket = open.memory->bucket();
    open.pending = exchange_ ? exchange_->start(bucket, turn_)
                             : std::make_unique<sync::Done>(sync::Pending::Times{open.full_at, open.full_at});
    if (turn_ == sync::Turn::in_line) in_line_s_ += now_seconds() - open.full_at;
  }
}

float* Reducer::notes_aboard() { return plain() && !buckets_.empty() ? buckets_.back().memory->notes() : nullptr; }

// When all gradients were taken.
void Reducer::write_notes() {
  notes_[kWeight] = static_cast<float>(weighted_ ? weight_ : 1);
  notes_[kBad] = bad_here_ >= 0;
  notes_[kReplan] = !stays_ && comm_.rank() == 0 && choice_.measured && timings_.due(steps_);
  std::ranges::copy(told_, notes_.begin() + kTold);
}

void Reducer::read_notes(const float* sums, double factor) {
  for (std::size_t k = 0; k < notes_.size(); ++k) notes_[k] = static_cast<float>(sums[k] * factor);
  std::copy_n(notes_.begin() + kTold, told_.size(), told_.begin());
  total_weight_ = notes_[kWeight];
  if (notes_[kBad] > 0) name_bad_gradients();
}

void Reducer::name_bad_gradients() {
  if (stays_) {
    bad_.push_back({comm_.rank(), parameters_[bad_here_].name});
    return;
  }
  std::vector<std::int32_t> mine{bad_here_}, all(comm_.size());
  comm_.all_gather(mine, all);
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (all[rank] >= 0) bad_.push_back({rank, parameters_[all[rank]].name});
  }
}

void Reducer::give_results() {
  // The exchange divides by all ranks; the mean is over weights.
  double factor = weighted_ && total_weight_ > 0 ? ranks_ / total_weight_ : 1;
  for (auto& open : buckets_) {
    if (factor != 1) open.memory->scale(factor);
    const auto& members = open.memory->members();
    for (std::size_t k = 0; k < members.size(); ++k) {
      // No rank has one: it stays as it was. Unless the others are yet to be asked.
      if (notes_[kUsed + members[k]] == 0 && !stays_) continue;
      open.memory->give(const_cast<torch::Tensor&>(parameters_[members[k]].tensor), k);
    }
  }
}

// ---- Plans ----

// The buckets of an order, from this rank's measurements where the plan needs them; before there are any, as DDP does.
sync::Buckets Reducer::cut(const std::vector<int>& order) {
  const bool measured = choice_.measured && steps_ > 0;
  auto choice = choice_.measured && !measured ? sync::parse_bucket_plan("cap:25") : choice_;
  sync::BucketCosts costs;
  std::vector<float> ready(parameters_.size());
  if (measured) {
    std::size_t all = 0;
    for (const auto& parameter : parameters_) all += parameter.tensor.nbytes();
    const bool spare = turn_ == sync::Turn::background && has_spare_core(comm_, threads_);
    const auto sent = comm_.bytes_sent();
    costs = measure_costs(comm_, turn_, spare, all, [&](std::size_t n) { return exchange_->rehearsal(n); });
    ready = timings_.medians();
    comm_.all_reduce(ready, Op::avg);
    measuring_bytes_ += comm_.bytes_sent() - sent;
  }
  auto kind = [&](int p) { return std::pair(parameters_[p].tensor.scalar_type(), parameters_[p].tensor.device()); };
  sync::Buckets ends;
  // A bucket has one type and lies on one device.
  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<sync::Gradient> run;
    std::size_t end = begin;
    for (; end < order.size() && kind(order[end]) == kind(order[begin]); ++end) {
      const auto& tensor = parameters_[order[end]].tensor;
      run.push_back({ready[order[end]], tensor.nbytes(), born_in_heap_[order[end]] != 0});
    }
    for (std::size_t cut : plan_buckets(choice, run, costs)) ends.push_back(begin + cut);
    begin = end;
  }
  return ends;
}

void Reducer::build(const std::vector<int>& order, const sync::Buckets& ends) {
  order_ = order;
  std::vector<Open> fresh;
  std::size_t begin = 0;
  for (std::size_t end : ends) {
    std::vector<int> members(order.begin() + begin, order.begin() + end);
    for (std::size_t k = 0; k < members.size(); ++k) places_[members[k]] = {fresh.size(), k, false};
    std::size_t notes = plain() && end == order.size() ? notes_.size() : 0;
    fresh.push_back(
        {std::make_unique<BucketMemory>(comm_, static_cast<int>(fresh.size()), parameters_, members, notes, memory_)});
    begin = end;
  }
  buckets_ = std::move(fresh);  // gradients that are views keep the old memory alive until the next exchange
}

// After the first step in the order observed; measured plans then when rank 0 finds it is time. Rank 0's word counts.
void Reducer::replan_if_due() {
  if (stays_) return;
  const bool first = steps_ == 0;
  if (!first && notes_[kReplan] == 0) return;
  auto order = order_;
  if (first) {
    // Those that were not seen keep their place at the end.
    order = timings_.observed();
    for (int p : order_) {
      if (std::ranges::find(order, p) == order.end()) order.push_back(p);
    }
    // Parameters of one kind stay together, so that few buckets are cut short.
    std::ranges::stable_sort(order, {}, [&](int p) { return static_cast<int>(parameters_[p].tensor.scalar_type()); });
  }
  std::vector<std::int32_t> said(order.begin(), order.end());
  comm_.broadcast(said, 0);
  order.assign(said.begin(), said.end());
  auto ends = cut(order);
  std::vector<std::int32_t> cuts(order.size() + 1, 0);
  cuts[0] = static_cast<std::int32_t>(ends.size());
  std::ranges::copy(ends, cuts.begin() + 1);
  comm_.broadcast(cuts, 0);
  ends.assign(cuts.begin() + 1, cuts.begin() + 1 + cuts[0]);
  build(order, ends);
  if (!first) timings_.planned(steps_);
}

// ---- What it says of itself ----

std::vector<std::string> Reducer::unused() const {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (notes_[kUsed + p] == 0) names.push_back(parameters_[p].name);
  }
  return names;
}

std::vector<ReadyGradient> Reducer::ready_gradients() const {
  const auto medians = timings_.medians();
  std::vector<ReadyGradient> all;
  for (int p : order_) {
    const auto& [name, tensor] = parameters_[p];
    all.push_back({name, static_cast<std::size_t>(tensor.numel()), rows_of(tensor), medians[p]});
  }
  std::ranges::stable_sort(all, {}, &ReadyGradient::ready_s);
  return all;
}

std::string Reducer::describe() const {
  std::size_t least = SIZE_MAX, most = 0;
  for (const auto& open : buckets_) {
    least = std::min(least, open.memory->bytes());
    most = std::max(most, open.memory->bytes());
  }
  auto mib = [](std::size_t bytes) {
    return bytes < (1 << 20) ? fmt::format("{:.0f} KiB", bytes / 1024.) : fmt::format("{:.1f} MiB", bytes / 1048576.);
  };
  auto sizes = buckets_.empty() ? "" : least == most ? mib(most) : fmt::format("{} to {}", mib(least), mib(most));
  const auto how = turn_ == sync::Turn::in_line ? "in line" : "in the background";
  return fmt::format("{} bucket{} ({}), plan {}, {}", buckets_.size(), buckets_.size() == 1 ? "" : "s", sizes,
                     choice_.name, how);
}

}  // namespace trireme::grad

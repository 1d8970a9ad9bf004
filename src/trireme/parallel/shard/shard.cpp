#include "trireme/parallel/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/grad/finite.h"
#include "trireme/parallel/shard/shard_impl.h"

namespace trireme::parallel {
namespace {

// Hears a stage whose first segment has this number.
class Ear final : public SegmentWatch {
 public:
  Ear(SegmentWatch& to, std::size_t first) : to_(to), first_(first) {}
  void before_forward(std::size_t segment) override { to_.before_forward(first_ + segment); }
  void after_forward(std::size_t segment) override { to_.after_forward(first_ + segment); }
  void before_backward(std::size_t segment) override { to_.before_backward(first_ + segment); }
  void after_backward(std::size_t segment, bool last) override { to_.after_backward(first_ + segment, last); }

 private:
  SegmentWatch& to_;
  const std::size_t first_;
};

}  // namespace

// ---- Weights come and go ----

void Sharded::Impl::enter(std::size_t segment, bool backward) {
  order.enter(segment, backward);
  for (Unit* unit : of_segment[segment]) {
    unit->flat.need();
    ++unit->users;
  }
  prefetch();
}

// What is needed next comes while this segment computes. Between a step's end and the new weights only what is used
// for certain: nothing may read the shards while an optimizer changes them.
void Sharded::Impl::prefetch() {
  if (!sharded_weights() || !exchange.background()) return;
  if (auto next = order.next(/*sure=*/!foresees)) {
    for (Unit* unit : of_segment[*next]) unit->flat.start_gather();
  }
}

void Sharded::Impl::leave(std::size_t segment) {
  const auto next = order.next(/*sure=*/!foresees);
  for (Unit* unit : of_segment[segment]) {
    if (--unit->users > 0) continue;
    if (!next || !std::ranges::count(unit->segments, *next)) unit->flat.release();
  }
}

// ---- Gradients ----

void Sharded::Impl::begin_step() {
  stepping = true;
  bad_here = -1;
  std::ranges::fill(notes, 0.f);
  for (auto& [name, piece] : shards) piece.mutable_grad().reset();
  for (auto& unit : units) {
    if (unit->gradients) unit->gradients->begin();
    unit->needs_scatter = false;
    unit->lasts = 0;
  }
}

void Sharded::Impl::after_backward(std::size_t segment, bool last) {
  if (!stepping) begin_step();
  if (on_its_way) on_its_way->gradients->settle();
  for (Unit* unit : of_segment[segment]) {
    if (!unit->gradients) continue;
    collect(*unit);
    if (last) ++unit->lasts;
    // Backward of a micro-batch ends with the first segment that uses it.
    const bool complete = whole_until_last() ? unit->lasts == unit->segments.size() : segment == unit->segments.front();
    if (complete) scatter(*unit);
  }
  leave(segment);
}

void Sharded::Impl::collect(Unit& unit) {
  unit.gradients->collect([&](std::size_t part, const torch::Tensor& gradient) {
    const std::size_t number = unit.first_part + part;
    notes[kUsed + number] = 1;
    if (options.check_finite && bad_here < 0 && !grad::all_finite(gradient)) bad_here = static_cast<int>(number);
  });
  unit.needs_scatter = true;
}

// One at a time: whole gradients on their way take memory, and have the next unit's backward to arrive in.
void Sharded::Impl::scatter(Unit& unit) {
  if (on_its_way) on_its_way->gradients->settle();
  unit.gradients->scatter();
  unit.needs_scatter = false;
  on_its_way = &unit;
}

void Sharded::Impl::finish() {
  if (!stepping) begin_step();
  for (auto& unit : units) {
    if (unit->gradients && (unit->needs_scatter || !unit->gradients->scattered())) scatter(*unit);
  }
  if (on_its_way) on_its_way->gradients->settle();
  on_its_way = nullptr;
  for (auto& unit : units) {
    unit->users = 0;
    unit->flat.release();
  }
  order.end_step();
  exchange_notes();
  give_gradients();
  stepping = false;
  foresees = false;
  times = exchange.take_times();
}

void Sharded::Impl::exchange_notes() {
  std::ranges::copy(told, notes.begin());
  notes[kBad] = bad_here >= 0;
  const double begin = now_seconds();
  comm.all_reduce(notes);
  std::copy_n(notes.begin(), told.size(), told.begin());
  bad.clear();
  if (notes[kBad] > 0) {
    std::vector<std::int32_t> mine{bad_here}, all(comm.size());
    comm.all_gather(mine, all);
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (all[rank] >= 0) bad.push_back({rank, learning[all[rank]]});
    }
  }
  exchange.add_wait(now_seconds() - begin);
}

void Sharded::Impl::give_gradients() {
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const auto& unit = *units[pieces[k].unit];
    if (notes[kUsed + unit.first_part + pieces[k].part] == 0) continue;
    shards[k].second.mutable_grad() = unit.flat.piece(unit.gradients->shard(), unit.flat.parts()[pieces[k].part]);
  }
}

// ---- The public face ----

Sharded::Sharded(std::vector<nn::Named> units, Communicator& data, const ShardOptions& options)
    : impl_(std::make_unique<Impl>(std::move(units), data, options)) {}
Sharded::~Sharded() = default;

void Sharded::before_forward(std::size_t segment) { impl_->enter(segment, false); }
void Sharded::after_forward(std::size_t segment) { impl_->leave(segment); }
void Sharded::before_backward(std::size_t segment) { impl_->enter(segment, true); }

void Sharded::after_backward(std::size_t segment, bool last) { impl_->after_backward(segment, last); }

void Sharded::finish() { impl_->finish(); }
const nn::Named& Sharded::shards() const { return impl_->shards; }

void Sharded::start_gather_weights() {
  for (auto& unit : impl_->units) {
    if (!unit->flat.learning()) continue;
    unit->flat.outdate();
    if (!impl_->sharded_weights()) unit->flat.start_gather();
  }
  impl_->foresees = true;
}

void Sharded::gather_weights() {
  start_gather_weights();
  if (!impl_->sharded_weights()) {
    for (auto& unit : impl_->units) unit->flat.need();
  }
  impl_->times.add(impl_->exchange.take_times());
}

void Sharded::zero_grad() {
  for (auto& [name, piece] : impl_->shards) piece.mutable_grad().reset();
}

void Sharded::sum_tied(Communicator& stages, const std::vector<std::string>& parameters) {
  torch::NoGradGuard no_grad;
  for (auto& [name, piece] : impl_->shards) {
    if (!std::ranges::count(parameters, name)) continue;
    TRIREME_CHECK(impl_->place_of(name).unit->flat.parts().size() == 1);
    if (!piece.grad().defined()) piece.mutable_grad() = torch::zeros_like(piece);
    all_reduce_in_place(piece.grad(), stages);
  }
}

double Sharded::local_squares() const {
  double sum = 0;
  for (const auto& [name, piece] : impl_->shards) {
    if (piece.grad().defined()) sum += grad::sum_of_squares(piece.grad());
  }
  return sum;
}

double Sharded::local_squares(const std::set<std::string>& parameters) const {
  double sum = 0;
  for (const auto& [name, piece] : impl_->shards) {
    if (parameters.contains(name) && piece.grad().defined()) sum += grad::sum_of_squares(piece.grad());
  }
  return sum;
}

double Sharded::grad_norm() {
  std::vector<double> mine{local_squares()}, all(impl_->comm.size());
  impl_->comm.all_gather(mine, all);
  double sum = 0;  // in the order of ranks, so that all have the same bits
  for (double one : all) sum += one;
  return std::sqrt(sum);
}

void Sharded::scale_gradients(double factor) {
  torch::NoGradGuard no_grad;
  for (auto& [name, piece] : impl_->shards) {
    if (piece.grad().defined()) piece.mutable_grad().mul_(factor);
  }
}

const std::vector<BadGradient>& Sharded::bad_gradients() const { return impl_->bad; }
void Sharded::tell(const std::array<float, kTold>& numbers) { impl_->told = numbers; }
std::array<float, Sharded::kTold> Sharded::told() const { return impl_->told; }
ShardTimes Sharded::shard_times() const { return impl_->times; }
ExchangeTimes Sharded::times() const {
  ExchangeTimes times;
  times.exposed = impl_->times.exposed;
  times.communication = impl_->times.communication;
  return times;
}
int Sharded::ranks() const { return impl_->exchange.comm().size(); }

std::size_t Sharded::largest_unit() const {
  std::size_t most = 0;
  for (const auto& unit : impl_->units) most = std::max(most, unit->flat.elements());
  return most;
}

std::string Sharded::describe() const {
  std::size_t all = 0, most = 0;
  for (const auto& unit : impl_->units) {
    all += unit->flat.bytes();
    most = std::max(most, unit->flat.bytes());
  }
  return fmt::format("{} sharded over {}: {} unit{}, {:.1f} MiB, the largest {:.1f} MiB, {}", name(impl_->options.what),
                     impl_->comm.size(), impl_->units.size(), impl_->units.size() == 1 ? "" : "s", all / 1048576.,
                     most / 1048576., impl_->exchange.background() ? "in the background" : "in line");
}

void Sharded::watch(std::span<Stage* const> stages) {
  std::size_t first = 0;
  for (Stage* stage : stages) {
    impl_->ears.push_back(std::make_unique<Ear>(*this, first));
    stage->set_watch(impl_->ears.back().get());
    first += stage->segments();
  }
}

void average_buffers(Communicator& data, const nn::Named& buffers) {
  torch::NoGradGuard no_grad;
  for (const auto& [name, buffer] : buffers) {
    if (!buffer.is_floating_point()) continue;
    all_reduce_in_place(buffer.detach(), data, Op::avg);
  }
}

std::vector<nn::Named> units_of(const Stage& stage) {
  std::vector<nn::Named> units;
  for (std::size_t k = 0; k < stage.segments(); ++k) units.push_back(stage.parameters(k));
  return units;
}

std::vector<nn::Named> units_of(std::span<Stage* const> stages) {
  std::vector<nn::Named> units;
  for (const Stage* stage : stages) {
    for (auto& unit : units_of(*stage)) units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace trireme::parallel

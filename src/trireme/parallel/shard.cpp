#include "trireme/parallel/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <tuple>

#include "trireme/base/error.h"
#include "trireme/grad/finite.h"
#include "trireme/grad/replicas.h"
#include "trireme/grad/spare_core.h"
#include "trireme/parallel/shard_impl.h"

namespace trireme::parallel {
namespace {

// Behind what the caller tells.
enum Note : std::size_t { kBad = Sharded::kTold, kUsed };

const ShardOptions& checked(const ShardOptions& options) {
  if (options.what == ShardKind::none) {
    throw ConfigError("shard: none leaves nothing to do; use data_parallel(), or optimizer, gradients or parameters");
  }
  if (options.op != Op::sum && options.op != Op::avg) throw ConfigError("shard: gradients are added up or averaged");
  return options;
}

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

// ---- Units ----

Sharded::Impl::Unit::Unit(Exchange& exchange, std::vector<FlatPart> parts, bool learning,
                          std::vector<std::size_t> used_by, const ShardOptions& options)
    : segments(std::move(used_by)), flat(exchange, std::move(parts), learning, options.what != ShardKind::parameters) {
  if (learning) gradients.emplace(exchange, flat, options.op, options.what == ShardKind::optimizer);
}

Sharded::Impl::Impl(std::vector<nn::Named> given, Communicator& data, const ShardOptions& wanted)
    : comm(data),
      options(checked(wanted)),
      exchange(comm, options.turn ? *options.turn : grad::turn_for(comm, options.threads)),
      order(given.size()),
      of_segment(given.size()) {
  build(given);
  find_pieces();
  notes.assign(kUsed + learning.size(), 0.f);
}

Sharded::Impl::~Impl() {
  const auto patience = std::chrono::seconds(std::uncaught_exceptions() > 0 ? 0 : 5);
  for (auto& unit : units) {
    for (Work* work : {unit->flat.pending(), unit->gradients ? unit->gradients->pending() : nullptr}) {
      if (!work) continue;
      try {
        if (work->wait_for(patience)) continue;
        comm.abort("sharding: a worker left in the middle of a step");
        work->wait();
      } catch (const std::exception&) {  // it has ended, and was said where it was waited for
      }
    }
  }
}

void Sharded::Impl::build(const std::vector<nn::Named>& given) {
  struct Found {
    FlatPart part;
    std::vector<std::size_t> segments;
  };
  std::vector<Found> found;  // each tensor once
  std::map<const void*, std::size_t> number;
  std::vector<std::pair<std::string, std::size_t>> all;
  std::vector<grad::Parameter> outline;
  for (std::size_t segment = 0; segment < given.size(); ++segment) {
    for (const auto& [name, tensor] : given[segment]) {
      outline.push_back({name, tensor});
      if (!tensor.is_cpu()) {
        throw ConfigError(
            fmt::format("shard: parameter '{}' is on {}; sharding is for the CPU", name, tensor.device().str()));
      }
      grad::element_type(outline.back());
      auto [at, fresh] = number.emplace(tensor.unsafeGetTensorImpl(), found.size());
      if (fresh) found.push_back({{name, {}, tensor}, {}});
      auto& entry = found[at->second];
      if (name != entry.part.name && !std::ranges::count(entry.part.other_names, name)) {
        entry.part.other_names.push_back(name);
      }
      if (entry.segments.empty() || entry.segments.back() != segment) entry.segments.push_back(segment);
      if (std::ranges::none_of(all, [&, n = name](const auto& one) { return one.first == n; })) {
        all.emplace_back(name, at->second);
      }
    }
  }
  grad::check_same_outline(comm, outline);
  std::vector<grad::Parameter> tensors;
  for (const auto& entry : found) tensors.push_back({entry.part.name, entry.part.parameter});
  grad::broadcast_all(comm, tensors, 0);

  auto kind = [&](const Found& entry) {
    const auto& [name, others, tensor, offset, count] = entry.part;
    return std::tuple(entry.segments, tensor.scalar_type(), tensor.requires_grad(),
                      options.apart.contains(name) ? name : std::string());
  };
  std::vector<bool> taken(found.size());
  for (std::size_t first = 0; first < found.size(); ++first) {
    if (taken[first]) continue;
    std::vector<FlatPart> parts;
    for (std::size_t k = first; k < found.size(); ++k) {
      if (kind(found[k]) != kind(found[first])) continue;
      taken[k] = true;
      parts.push_back(found[k].part);
    }
    const bool learns = found[first].part.parameter.requires_grad();
    units.push_back(std::make_unique<Unit>(exchange, std::move(parts), learns, found[first].segments, options));
    auto& unit = *units.back();
    unit.first_part = learning.size();
    for (std::size_t segment : unit.segments) of_segment[segment].push_back(&unit);
    for (const auto& part : unit.flat.parts()) {
      if (learns) learning.push_back(part.name);
      places[part.name] = {&unit, &part};
      for (const auto& other : part.other_names) places[other] = {&unit, &part};
    }
  }
  for (const auto& [name, k] : all) names.emplace_back(name, places.at(name));
}

void Sharded::Impl::find_pieces() {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto& flat = units[u]->flat;
    if (!flat.learning()) continue;
    for (std::size_t k = 0; k < flat.parts().size(); ++k) {
      const auto& part = flat.parts()[k];
      if (flat.owned(part, comm.rank()).count() == 0) continue;
      pieces.push_back({u, k});
      shards.emplace_back(part.name, flat.piece(flat.shard(), part));
    }
  }
}

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
    stages.all_reduce(view_of(piece.grad()));
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
ShardTimes Sharded::times() const { return impl_->times; }

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

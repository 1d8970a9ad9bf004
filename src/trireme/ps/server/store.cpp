#include "trireme/ps/server/store.h"

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme::ps {

std::shared_ptr<Floats> BufferPool::take(std::size_t count) {
  constexpr std::size_t kMostSpare = 16;
  std::unique_ptr<Floats> buffer;
  auto& spare = spare_->buffers;
  auto found = std::ranges::find_if(spare, [&](auto& each) { return each->size() == count; });
  if (found != spare.end()) {
    buffer = std::move(*found);
    spare.erase(found);
  } else {
    buffer = std::make_unique<Floats>(count);
  }
  return {buffer.release(), [shelf = spare_](Floats* floats) {
            std::unique_ptr<Floats> back(floats);
            if (shelf->buffers.size() >= kMostSpare) shelf->buffers.erase(shelf->buffers.begin());
            shelf->buffers.push_back(std::move(back));
          }};
}

Held* Store::head_of(std::uint32_t shard) {
  auto found = shards_.find(shard);
  if (found == shards_.end() || !found->second.head || !found->second.shard) return nullptr;
  return &found->second;
}

void Store::set_view(View view, ServerId self, const UpdateMakers& own) {
  view_ = std::move(view);
  if (!has_update_ && view_.layout.shards() > 0) {
    update_ = make_update(view_.update, own);
    has_update_ = true;
  }
  members_.clear();
  for (auto& worker : view_.workers) members_.push_back({worker.id, worker.initial});
  for (std::uint32_t id = 0; id < view_.chains.size(); ++id) {
    auto& chain = view_.chains[id];
    auto at = std::ranges::find(chain, self);
    if (at == chain.end()) {
      shards_.erase(id);
      continue;
    }
    Held& held = shards_[id];
    held.head = at == chain.begin();
    held.predecessor = held.head ? kNobody : *std::prev(at);
    if (held.head) held.source = 0;
    ServerId successor = std::next(at) == chain.end() ? kNobody : *std::next(at);
    if (successor != held.successor) {
      held.successor = successor;
      held.successor_link = 0;
      held.confirmed = false;
      held.stored_below = 0;
    }
  }
}

void Store::init(std::uint32_t id, std::span<const float> values, std::span<const float> states,
                 std::uint64_t version) {
  Held& held = shards_[id];
  if (held.shard) return;
  auto shard = std::make_shared<Shard>(id, values.size(), update_.states);
  std::ranges::copy(values, shard->weights().begin());
  shard->begin_with(update_);
  if (version > 0) shard->go_on_from(states, version);
  held.shard = std::move(shard);
  held.shard->end_record();
}

std::optional<Refusal> Store::refusal(const PushBody& push) {
  if (!view_.has_worker(push.worker)) return Refusal::gone;
  for (auto& part : push.parts) {
    Held* held = head_of(part.shard);
    if (!held) return Refusal::not_here;
    auto& workers = held->shard->workers();
    auto known = workers.find(push.worker);
    bool first = known == workers.end();
    std::uint64_t expected = first ? 0 : known->second.pushes;
    bool believed = held->shard->restored() && (first || known->second.stale);
    if (push.sequence > expected && !believed) return Refusal::gap;
  }
  return std::nullopt;
}

std::uint64_t Store::staleness(const PushBody& push, const PushBody::Part& part) {
  const Shard& shard = *head_of(part.shard)->shard;
  auto found = shard.workers().find(push.worker);
  std::uint64_t own = found == shard.workers().end() ? 0 : found->second.applied;
  std::uint64_t all = shard.version() - std::min(part.read_version, shard.version());
  std::uint64_t mine = own - std::min(part.read_applied, own);
  return all - std::min(mine, all);
}

std::vector<std::uint64_t> Store::apply_visible(Shard& shard) {
  auto clocks = shard.due(view_.consistency, minimum(shard));
  for (std::uint64_t clock : clocks) shard.apply(clock, update_);
  return clocks;
}

std::optional<Change> Store::take(const PushBody& push, const PushBody::Part& part, std::span<const float> values,
                                  std::shared_ptr<const void> keep, bool borrowed) {
  Held& held = *head_of(part.shard);
  Shard& shard = *held.shard;
  auto known = shard.workers().find(push.worker);
  if (known != shard.workers().end() && push.sequence < known->second.pushes) return std::nullopt;
  bool chained = held.successor != kNobody;
  if (borrowed && chained) {
    auto own = pool_.take(values.size());
    std::ranges::copy(values, own->span().begin());
    values = own->span();
    keep = own;
    borrowed = false;
  }
  Contribution contribution{push.worker, push.sequence, push.clock, push.lr, part.segments,
                            part.sparse, values,        keep,       borrowed};
  Change change{{part.shard, 0, true, contribution, {}}, std::as_bytes(values), keep};
  shard.take(std::move(contribution));
  if (chained || view_.consistency.async) {
    change.body.applies = apply_visible(shard);
  } else {
    held.unsettled = true;
  }
  if (borrowed && !push.patient) shard.adopt(push.clock, push.worker);
  shard.end_record();
  change.body.record = shard.record();
  if (!chained) return std::nullopt;
  return change;
}

bool Store::settle(Held& held, std::span<float* const> copies) {
  if (!held.unsettled || !held.shard) return false;
  held.unsettled = false;
  auto clocks = held.shard->due(view_.consistency, minimum(*held.shard));
  bool copied = false;
  for (std::uint64_t clock : clocks) {
    bool last = clock == clocks.back();
    copied = held.shard->apply(clock, update_, last ? copies : std::span<float* const>());
  }
  return copied;
}

std::optional<Change> Store::apply_due(Held& held) {
  if (!held.head || !held.shard) return std::nullopt;
  held.unsettled = false;
  auto clocks = apply_visible(*held.shard);
  if (clocks.empty()) return std::nullopt;
  held.shard->end_record();
  return Change{{held.shard->id(), held.shard->record(), false, {}, std::move(clocks)}, {}, {}};
}

void Store::follow(Held& held, const RecordBody& body, std::span<const float> values,
                   std::shared_ptr<const void> keep) {
  if (body.has_push) {
    Contribution push = body.push;
    push.values = values;
    push.keep = std::move(keep);
    held.shard->take(std::move(push));
  }
  for (std::uint64_t clock : body.applies) held.shard->apply(clock, update_);
  held.shard->end_record();
}

Store::Answer Store::answer(const PullBody& pull, std::uint32_t id) {
  Held* held = head_of(id);
  if (!held) return Answer::not_here;
  Shard& shard = *held->shard;
  auto known = shard.workers().find(pull.worker);
  bool first = known == shard.workers().end();
  if (pull.pushes > (first ? 0 : known->second.pushes)) {
    if (!shard.restored() || !(first || known->second.stale)) return Answer::later;
    WorkerState& state = shard.worker(pull.worker);
    state.pushes = pull.pushes;
    state.clock = pull.clock;
    state.stale = false;
  }
  return view_.consistency.answered(pull.clock, minimum(shard)) ? Answer::now : Answer::later;
}

}  // namespace trireme::ps

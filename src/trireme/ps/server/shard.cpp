#include "trireme/ps/server/shard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "trireme/base/error.h"
#include "trireme/ps/server/kernels.h"

namespace trireme::ps {
namespace {

constexpr std::size_t kPiece = 512;       // elements: what one pass reads and writes stays in the nearest cache
constexpr std::size_t kStreamed = 65536;  // elements: more would only drive other things out of the caches

// Elements that any of the contributions has, in order, none twice.
std::vector<Segment> touched(std::span<const Contribution* const> parts, std::size_t count) {
  std::vector<Segment> all;
  for (const Contribution* part : parts) {
    if (!part->sparse) return {{0, count}};
    all.insert(all.end(), part->segments.begin(), part->segments.end());
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
  std::vector<Segment> joined;
  for (const Segment& next : all) {
    if (next.count == 0) continue;
    if (!joined.empty() && next.offset <= joined.back().offset + joined.back().count) {
      auto& last = joined.back();
      last.count = std::max(last.count, next.offset + next.count - last.offset);
    } else {
      joined.push_back(next);
    }
  }
  return joined;
}

// The segments of a contribution, read from the first to the last.
class SegmentReader {
 public:
  explicit SegmentReader(const Contribution& part) : part_(part), values_(part.values.data()) {}
  // Adds what there is of elements [begin, begin + n) to `sum`; `begin` never goes back.
  void add(std::size_t begin, std::size_t n, float* sum) {
    const auto& segments = part_.segments;
    for (; next_ < segments.size() && segments[next_].offset + segments[next_].count <= begin; ++next_) {
      values_ += segments[next_].count;
    }
    const float* values = values_;
    for (std::size_t i = next_; i < segments.size() && segments[i].offset < begin + n; ++i) {
      const std::size_t from = std::max<std::size_t>(segments[i].offset, begin);
      const std::size_t to = std::min<std::size_t>(segments[i].offset + segments[i].count, begin + n);
      if (from < to) kernels::add_to(sum + (from - begin), values + (from - segments[i].offset), to - from);
      values += segments[i].count;
    }
  }

 private:
  const Contribution& part_;
  std::size_t next_ = 0;  // the first segment that is not all before `begin`
  const float* values_;   // its values
};

// The sum of the contributions, in order, over [begin, begin + n): in `scratch`, or where it lies already. `readers`
// are theirs, in the same order; `dense`: none is sparse.
const float* sum_of(std::span<const Contribution* const> parts, std::span<SegmentReader> readers, bool dense,
                    std::size_t begin, std::size_t n, float* scratch) {
  if (dense) {
    const float* first = parts[0]->values.data() + begin;
    if (parts.size() == 1) return first;
    kernels::add(scratch, first, parts[1]->values.data() + begin, n);
    for (std::size_t i = 2; i < parts.size(); ++i) kernels::add_to(scratch, parts[i]->values.data() + begin, n);
    return scratch;
  }
  std::memset(scratch, 0, n * sizeof(float));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->sparse) {
      readers[i].add(begin, n, scratch);
    } else {
      kernels::add_to(scratch, parts[i]->values.data() + begin, n);
    }
  }
  return scratch;
}

// An update of one step, piece by piece. What it tells of a piece is filled in anew, not made anew: between copies past
// the caches that would cost as much as the step.
class PieceStepper {
 public:
  PieceStepper(const Update& update, const Floats& weights, std::span<const Floats> states, double lr,
               std::uint64_t step)
      : update_(update), weights_(weights), states_(states), piece_{{}, {}, {state_.data(), states.size()}, lr, step} {
    if (update.rule) update.rule->begin(lr, step);
  }

  // Of elements [at, at + n).
  void operator()(std::size_t at, std::size_t n, const float* gradient) {
    if (update_.rule) {
      flat_.w = weights_.data() + at;
      flat_.g = gradient;
      for (std::size_t k = 0; k < states_.size(); ++k) flat_.kept[k] = states_[k].data() + at;
      flat_.n = n;
      return update_.rule->apply(flat_);
    }
    piece_.weights = {weights_.data() + at, n};
    piece_.gradient = {gradient, n};
    for (std::size_t k = 0; k < states_.size(); ++k) state_[k] = {states_[k].data() + at, n};
    update_.apply(piece_);
  }

 private:
  const Update& update_;
  const Floats& weights_;
  const std::span<const Floats> states_;
  std::array<std::span<float>, kMostStates> state_;
  Piece piece_;
  optim::Piece flat_;
};

}  // namespace

Floats::Floats(std::size_t count)
    : memory_(
          static_cast<float*>(::operator new(std::max<std::size_t>(count, 1) * sizeof(float), std::align_val_t(64)))),
      count_(count) {}
void Floats::Free::operator()(float* memory) const { ::operator delete(memory, std::align_val_t(64)); }

std::uint64_t values_of(const std::vector<Segment>& segments, bool sparse, std::uint64_t count) {
  if (!sparse) return count;
  std::uint64_t sum = 0, end = 0;
  for (const Segment& segment : segments) {
    if (segment.offset < end || segment.offset > count || segment.count > count - segment.offset) {
      throw ProtocolError("a push to the parameter server names elements outside of the shard, or twice");
    }
    end = segment.offset + segment.count;
    sum += segment.count;
  }
  return sum;
}

Shard::Shard(std::uint32_t id, std::size_t count, int states) : id_(id), weights_(count) {
  for (int i = 0; i < states; ++i) {
    states_.emplace_back(count);
    std::ranges::fill(states_.back().span(), 0.0f);
  }
}

void Shard::begin_with(const Update& update) {
  if (!update.rule) return;
  for (std::size_t k = 0; k < states_.size(); ++k) {
    std::ranges::fill(states_[k].span(), update.rule->quantities()[k].first);
  }
}

void Shard::go_on_from(std::span<const float> states, std::uint64_t version) {
  if (states.size() != states_.size() * count()) throw ProtocolError("first values with a state of another update");
  for (std::size_t k = 0; k < states_.size(); ++k) {
    std::ranges::copy(states.subspan(k * count(), count()), states_[k].span().begin());
  }
  version_ = version;
}

std::uint64_t Shard::minimum(std::span<const Member> live) const {
  std::uint64_t least = Consistency::kEveryone;
  for (const Member& member : live) {
    auto found = workers_.find(member.id);
    if (found != workers_.end()) {
      least = std::min(least, found->second.clock);
    } else if (member.initial) {
      least = 0;
    }
  }
  return least;
}

void Shard::take(Contribution contribution) {
  WorkerState& from = workers_[contribution.worker];
  from.pushes = contribution.sequence + 1;
  from.clock = contribution.clock + 1;
  from.record = record_ + 1;
  from.stale = false;
  auto key = std::pair(contribution.clock, contribution.worker);
  waiting_.insert_or_assign(key, std::move(contribution));
}

bool Shard::apply(std::uint64_t clock, const Update& update, std::span<float* const> copies) {
  auto begin = waiting_.lower_bound({clock, 0}), end = waiting_.upper_bound({clock, UINT32_MAX});
  if (begin == end) return false;
  std::vector<const Contribution*> parts;
  for (auto at = begin; at != end; ++at) {
    parts.push_back(&at->second);
    ++workers_[at->second.worker].applied;
  }
  ++version_;
  const bool dense = std::ranges::none_of(parts, &Contribution::sparse);
  PieceStepper step(update, weights_, states_, parts[0]->lr, version_);
  alignas(64) std::array<float, kPiece> scratch;
  const auto segments = touched(parts, count());
  std::vector<SegmentReader> readers;
  for (const Contribution* part : parts) readers.emplace_back(*part);
  const bool copied = segments.size() == 1 && segments[0].count == count();
  for (const Segment& segment : segments) {
    for (std::size_t done = 0; done < segment.count; done += kPiece) {
      const std::size_t at = segment.offset + done, n = std::min<std::size_t>(kPiece, segment.count - done);
      step(at, n, sum_of(parts, readers, dense, at, n, scratch.data()));
      if (!copied) continue;
      for (float* copy : copies) copy_piece(copy, at, n);
    }
  }
  if (copied && !copies.empty()) kernels::stream_end();
  waiting_.erase(begin, end);
  return copied;
}

void Shard::copy_piece(float* memory, std::size_t at, std::size_t n) const {
  const float* from = weights_.data() + at;
  if (count() < kStreamed) {
    std::memcpy(memory + at, from, n * sizeof(float));
  } else {
    kernels::stream(memory + at, from, n);
  }
}

void Shard::copy_to(float* memory) const {
  copy_piece(memory, 0, count());
  kernels::stream_end();
}

void Shard::adopt(std::uint64_t clock, std::uint32_t worker) {
  auto found = waiting_.find({clock, worker});
  if (found == waiting_.end() || !found->second.borrowed) return;
  Contribution& part = found->second;
  auto own = std::make_shared<Floats>(part.values.size());
  std::ranges::copy(part.values, own->span().begin());
  part.values = own->span();
  part.keep = own;
  part.borrowed = false;
}

std::vector<std::uint64_t> Shard::due(const Consistency& rule, std::uint64_t minimum) const {
  std::vector<std::uint64_t> clocks;
  for (auto& [key, contribution] : waiting_) {
    if (!rule.visible(key.first, minimum)) break;
    if (clocks.empty() || clocks.back() != key.first) clocks.push_back(key.first);
  }
  return clocks;
}

void Shard::pack(Packer& to, std::vector<std::span<const float>>& floats) const {
  to.put(id_).put<std::uint64_t>(count()).count(states_.size()).put(version_).put(record_).put(restored_);
  floats.push_back(weights());
  for (const Floats& state : states_) floats.push_back(state.span());
  to.count(workers_.size());
  for (auto& [id, worker] : workers_) {
    to.put(id).put(worker.pushes).put(worker.clock).put(worker.applied).put(worker.record).put(worker.stale);
  }
  to.count(waiting_.size());
  for (auto& [key, part] : waiting_) {
    to.put(part.worker).put(part.sequence).put(part.clock).put(part.lr).put(part.sparse).count(part.segments.size());
    for (const Segment& segment : part.segments) to.put(segment.offset).put(segment.count);
    floats.push_back(part.values);
  }
}

// The fields of pack(), without the floats.
struct Shard::Sizes {
  std::uint32_t id = 0;
  std::uint64_t count = 0;
  std::uint32_t states = 0;
  std::uint64_t version = 0, record = 0;
  bool restored = false;
  std::map<std::uint32_t, WorkerState> workers;
  std::vector<Contribution> waiting;
  std::uint64_t floats = 0;

  explicit Sizes(Unpacker& from) {
    id = from.get<std::uint32_t>();
    count = from.get<std::uint64_t>();
    states = from.get<std::uint32_t>();
    if (count > std::uint64_t{1} << 38 || states > kMostStates) throw ProtocolError("a shard that is too large");
    version = from.get<std::uint64_t>();
    record = from.get<std::uint64_t>();
    restored = from.flag();
    for (std::size_t n = from.count(37); n > 0; --n) {
      WorkerState& worker = workers[from.get<std::uint32_t>()];
      worker.pushes = from.get<std::uint64_t>();
      worker.clock = from.get<std::uint64_t>();
      worker.applied = from.get<std::uint64_t>();
      worker.record = from.get<std::uint64_t>();
      worker.stale = from.flag();
    }
    floats = count * (1 + states);
    for (std::size_t n = from.count(33); n > 0; --n) {
      Contribution part;
      part.worker = from.get<std::uint32_t>();
      part.sequence = from.get<std::uint64_t>();
      part.clock = from.get<std::uint64_t>();
      part.lr = from.get<double>();
      part.sparse = from.flag();
      part.segments.resize(from.count(16));
      for (Segment& segment : part.segments) {
        segment.offset = from.get<std::uint64_t>();
        segment.count = from.get<std::uint64_t>();
      }
      floats += values_of(part.segments, part.sparse, count);
      waiting.push_back(std::move(part));
    }
  }
};

std::uint64_t Shard::floats_of(Unpacker from) { return Sizes(from).floats; }

std::shared_ptr<Shard> Shard::unpack(Unpacker& from, std::span<const float> floats) {
  Sizes sizes(from);
  if (floats.size() != sizes.floats) throw ProtocolError("a shard with more or fewer floats than it must have");
  auto take = [&](std::size_t n) {
    auto part = floats.first(n);
    floats = floats.subspan(n);
    return part;
  };
  auto shard = std::make_shared<Shard>(sizes.id, sizes.count, static_cast<int>(sizes.states));
  std::ranges::copy(take(sizes.count), shard->weights().begin());
  for (Floats& state : shard->states_) std::ranges::copy(take(sizes.count), state.span().begin());
  shard->version_ = sizes.version;
  shard->record_ = sizes.record;
  shard->restored_ = sizes.restored;
  shard->workers_ = std::move(sizes.workers);
  for (Contribution& part : sizes.waiting) {
    auto values = take(values_of(part.segments, part.sparse, sizes.count));
    auto own = std::make_shared<Floats>(values.size());
    std::ranges::copy(values, own->span().begin());
    part.values = own->span();
    part.keep = own;
    shard->waiting_.insert_or_assign({part.clock, part.worker}, std::move(part));
  }
  return shard;
}

}  // namespace trireme::ps

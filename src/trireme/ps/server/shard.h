// A part of the model as one server keeps it: weights, the update's state, what came from which worker, and gradients
// that are not visible yet. All replicas of a shard go through the same changes in the same order and stay bit-equal.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "trireme/ps/clock.h"
#include "trireme/ps/layout.h"
#include "trireme/ps/server/update.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {

// Floats at a cache line's boundary; undefined at first.
class Floats {
 public:
  Floats() = default;
  explicit Floats(std::size_t count);
  float* data() const { return memory_.get(); }
  std::size_t size() const { return count_; }
  std::span<float> span() const { return {memory_.get(), count_}; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::unique_ptr<float[], Free> memory_;
  std::size_t count_ = 0;
};

// One worker's push to one shard. Without segments it is of the whole shard; else `values` are those of the segments,
// one after the other.
struct Contribution {
  std::uint32_t worker = 0;
  std::uint64_t sequence = 0;  // the worker's pushes so far
  std::uint64_t clock = 0;
  double lr = 0;
  std::vector<Segment> segments;
  bool sparse = false;  // segments are given, though there may be none
  std::span<const float> values;
  std::shared_ptr<const void> keep;  // holds the values
  bool borrowed = false;             // they lie in the worker's memory, which it may write again once it has its answer
};
// How many values it must have; throws ProtocolError when a segment lies outside of `count` elements or they are not in
// order.
std::uint64_t values_of(const std::vector<Segment>& segments, bool sparse, std::uint64_t count);

struct WorkerState {
  std::uint64_t pushes = 0;   // taken: the sequence that comes next
  std::uint64_t clock = 0;    // of the push that comes next
  std::uint64_t applied = 0;  // updates with something of this worker
  std::uint64_t record = 0;   // the shard's record of its last push
  bool stale = false;         // from a checkpoint: the worker knows better
};

class Shard {
 public:
  Shard(std::uint32_t id, std::size_t count, int states);
  Shard(const Shard&) = delete;

  std::uint32_t id() const { return id_; }
  std::size_t count() const { return weights_.size(); }
  std::span<float> weights() const { return weights_.span(); }
  std::uint64_t version() const { return version_; }
  // The update's state, each as long as the weights.
  std::span<const Floats> states() const { return states_; }
  std::uint64_t record() const { return record_; }
  const std::map<std::uint32_t, WorkerState>& workers() const { return workers_; }
  WorkerState& worker(std::uint32_t id) { return workers_[id]; }

  // The state that the update begins with; before, it is zero.
  void begin_with(const Update& update);
  // What an earlier job had come to: as many states as the update has, one after the other, and its updates so far.
  void go_on_from(std::span<const float> states, std::uint64_t version);

  // The least clock of those workers of `live` that count: members from the start, and who has pushed here since.
  struct Member {
    std::uint32_t id;
    bool initial;
  };
  std::uint64_t minimum(std::span<const Member> live) const;

  // A change of the shard: perhaps a contribution, then the updates of some clocks. Every change is one record.
  void take(Contribution contribution);
  // `copies` get the new weights in the same pass, where it goes over all of them; true when they have.
  bool apply(std::uint64_t clock, const Update& update, std::span<float* const> copies = {});
  // All weights as they are.
  void copy_to(float* memory) const;
  void end_record() { ++record_; }
  // The clocks of which there is something that is visible now, in order.
  std::vector<std::uint64_t> due(const Consistency& rule, std::uint64_t minimum) const;
  bool waits(std::uint64_t clock, std::uint32_t worker) const { return waiting_.contains({clock, worker}); }

  // Everything, as fields and floats. `pack` appends the floats that belong to them in order.
  void pack(Packer& to, std::vector<std::span<const float>>& floats) const;
  // `states` the update wants and `count` must be the shard's. Throws ProtocolError. `floats` are those of pack().
  static std::shared_ptr<Shard> unpack(Unpacker& from, std::span<const float> floats);
  // How many floats unpack() needs.
  static std::uint64_t floats_of(Unpacker from);
  // After it was read from a checkpoint: workers have gone on since, and are believed once.
  void mark_restored() {
    restored_ = true;
    for (auto& [id, state] : workers_) state.stale = true;
  }
  bool restored() const { return restored_; }
  // And what they pushed that is not visible yet; they are of another job.
  void forget_workers() {
    workers_.clear();
    waiting_.clear();
    restored_ = false;
  }
  // Copies the values of a contribution that still waits, if they lie in its worker's memory.
  void adopt(std::uint64_t clock, std::uint32_t worker);

 private:
  using Waiting = std::map<std::pair<std::uint64_t, std::uint32_t>, Contribution>;  // by clock, then worker
  struct Sizes;
  void copy_piece(float* memory, std::size_t at, std::size_t n) const;

  const std::uint32_t id_;
  Floats weights_;
  std::vector<Floats> states_;
  std::uint64_t version_ = 0;  // updates so far
  std::uint64_t record_ = 0;   // records so far
  bool restored_ = false;
  std::map<std::uint32_t, WorkerState> workers_;
  Waiting waiting_;
};

}  // namespace trireme::ps

// The shards of one server and their places in the chains. No sockets: what must be sent is returned.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "trireme/ps/wire/messages.h"

namespace trireme::ps {

// Memory for gradients that is used again: fresh memory of some MiB costs as much as the sum that is made in it. For
// one thread; buffers may outlive the pool.
class BufferPool {
 public:
  std::shared_ptr<Floats> take(std::size_t count);

 private:
  struct Spare {
    std::vector<std::unique_ptr<Floats>> buffers;
  };
  std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
};

struct Held {
  std::shared_ptr<Shard> shard;  // none until its values have come
  bool head = false;
  ServerId predecessor = kNobody, successor = kNobody;
  std::uint64_t source = 0;          // the link that it came from and its records come from; 0: none
  std::uint64_t successor_link = 0;  // the link on which the successor was given it whole; 0: not yet
  bool unsettled = false;            // updates may be visible that were not made yet
  bool confirmed = false;            // the successor has it
  std::uint64_t stored_below = 0;    // the newest record that all after us have
  // The newest record that we and all after us have.
  std::uint64_t stored() const { return successor == kNobody ? shard->record() : stored_below; }
};

// A change that the successor must hear of. `values` are those of the push as they travel, in memory that stays.
struct Change {
  RecordBody body;
  std::span<const std::byte> values;
  std::shared_ptr<const void> keep;
  // The values as they came, encoded: fewer bytes.
  void encode_as(std::span<const std::byte> bytes, std::shared_ptr<const void> holder) {
    body.encoded = true;
    values = bytes;
    keep = std::move(holder);
  }
};

class Store {
 public:
  const View& view() const { return view_; }
  std::map<std::uint32_t, Held>& shards() { return shards_; }
  // The shard if this server may answer for it.
  Held* head_of(std::uint32_t shard);

  // `self` finds its places; shards that it has none for any more are forgotten.
  void set_view(View view, ServerId self, const UpdateMakers& own);
  // First values, with the update's state and its updates so far where a job goes on; those of a shard that is there
  // already are ignored.
  void init(std::uint32_t shard, std::span<const float> values, std::span<const float> states = {},
            std::uint64_t version = 0);

  std::uint64_t minimum(const Shard& shard) const { return shard.minimum(members_); }
  // Why the push cannot be taken as a whole, if so; nothing is changed.
  std::optional<Refusal> refusal(const PushBody& push);
  // Takes one part of a push, unless it was taken before. Where there is a successor, or no clock, the updates that it
  // makes visible are made at once; elsewhere by settle(), which must be called before anything is answered. `values`
  // stay valid while `keep` lives; `borrowed` ones only until the worker has its answer.
  std::optional<Change> take(const PushBody& push, const PushBody::Part& part, std::span<const float> values,
                             std::shared_ptr<const void> keep, bool borrowed);
  // Makes the updates that are visible, of a shard that take() left to it; as Shard::apply().
  bool settle(Held& held, std::span<float* const> copies);
  // Updates by others since the weights of this part were read.
  std::uint64_t staleness(const PushBody& push, const PushBody::Part& part);
  // What a new view has made visible.
  std::optional<Change> apply_due(Held& held);
  // A change by our predecessor.
  void follow(Held& held, const RecordBody& body, std::span<const float> values, std::shared_ptr<const void> keep);
  // Whether a pull can be answered by this shard now; `refused` when not by this server.
  enum class Answer { now, later, not_here };
  Answer answer(const PullBody& pull, std::uint32_t shard);

  BufferPool& pool() { return pool_; }
  const Update& update() const { return update_; }

 private:
  std::vector<std::uint64_t> apply_visible(Shard& shard);

  View view_;
  std::vector<Shard::Member> members_;
  Update update_;
  bool has_update_ = false;
  BufferPool pool_;
  std::map<std::uint32_t, Held> shards_;
};

}  // namespace trireme::ps

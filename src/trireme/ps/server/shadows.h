// What the workers of a compressed job have of the shards that a server leads, so that it can answer pulls with
// differences. A state of a shard that was sent has a number, unique in the job; a worker says which it has, and one
// whose number is not known here, or is not what the server believes of it, gets the weights as they are.
//
// Workers at the same state that pull the same weights get the same message and come to the same state: under bsp all
// workers share one. Under async each has its own.
#pragma once
#include <map>
#include <memory>

#include "trireme/ps/coder.h"
#include "trireme/ps/server/shard.h"
#include "trireme/ps/view.h"

namespace trireme::ps {

class Shadows {
 public:
  struct Answer {
    std::uint64_t base = 0;    // the state that the message is a difference against; 0: these are the weights
    std::uint64_t number = 0;  // the state that it makes
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keep;
  };
  // For a worker that has the state `has`, 0 for none, what makes it have `shard` as far as a message can.
  // `coder` makes the coder of the shard's differences when there is none yet.
  Answer answer(ServerId self, WorkerId worker, const Shard& shard, std::uint64_t has,
                const std::function<Coder()>& coder);
  // Forgets workers that are gone, and shards that `self` does not lead.
  void keep_only(const View& view, ServerId self);

 private:
  struct State {
    std::uint64_t number = 0;
    Floats values;
  };
  struct OfShard {
    std::optional<Coder> coder;
    std::map<WorkerId, std::shared_ptr<State>> states;
    // The last message made: from which state, at which version of the weights, and what it made.
    Answer last;
    std::uint64_t version = 0;
    std::shared_ptr<State> made;
  };
  void send_whole(OfShard& of, const Shard& shard, std::uint64_t number);
  void send_difference(OfShard& of, const Shard& shard, std::shared_ptr<State> from, std::uint64_t number);

  std::uint64_t next_ = 0;
  std::map<std::uint32_t, OfShard> shards_;
};

}  // namespace trireme::ps

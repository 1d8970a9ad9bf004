// Which servers keep which shard. Pure arithmetic: told who is there and who has what, it says what the chains are.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "trireme/ps/view.h"

namespace trireme::ps {

class Placement {
 public:
  struct Candidate {
    ServerId id = kNobody;
    bool leaving = false;
    std::vector<std::uint32_t> kept;  // shards that it has from a checkpoint
  };

  // The first chains: heads spread evenly, or where a checkpoint has the shard. There is a server.
  void begin(std::size_t shards, const std::vector<Candidate>& servers, std::size_t replicas);
  // Who is not in `servers` is dead. A chain shrinks at once, grows by one server at a time, and loses one that shall
  // go only when enough others have the shard whole; where servers carry more shards than others, shards move. True
  // when a chain changed.
  bool settle(const std::vector<Candidate>& servers, std::size_t replicas);
  // `server` has the shard whole now.
  void synced(std::uint32_t shard, ServerId server);

  const std::vector<std::vector<ServerId>>& chains() const { return chains_; }
  // Shards that no living server has.
  std::vector<std::uint32_t> lost() const;
  bool carries(ServerId server) const;
  // Every shard has that many copies, all whole, and none is on the move.
  bool whole(std::size_t copies) const;

 private:
  bool bury(const std::vector<Candidate>& servers);
  bool grow(std::uint32_t shard, const std::vector<ServerId>& eligible, std::size_t wanted);
  bool shrink(std::uint32_t shard, const std::vector<ServerId>& eligible, std::size_t wanted);
  bool balance(const std::vector<ServerId>& eligible);
  bool balance_heads(const std::vector<ServerId>& eligible);
  std::size_t load(ServerId server) const;
  std::size_t heads(ServerId server) const;

  std::vector<std::vector<ServerId>> chains_;
  std::vector<std::set<ServerId>> whole_;  // who has the shard whole
  std::vector<ServerId> retiring_;         // whose copy goes when the newest one is whole; kNobody
};

}  // namespace trireme::ps

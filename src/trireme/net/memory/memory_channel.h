// A channel between ranks that share memory. Messages go through a ring per ordered pair; long ones whose bytes lie
// in the heap are passed by address and consumed where they are.
#pragma once
#include <deque>
#include <vector>

#include "trireme/net/memory/board.h"
#include "trireme/net/memory/ring.h"
#include "trireme/net/transport.h"

namespace trireme::net {

class MemoryTransport;

class MemoryChannel : public Channel {
 public:
  // The block that the members share, and its preparation by the one who allocates it.
  static std::size_t bytes_for(int members);
  static void format(std::byte* block, int members);
  // How a block ends. Every member counts itself gone with its end of the channel; from then on it reads no memory of
  // the others. Once all are gone each releases what it let them read, and counts itself cleared; when all are, nobody
  // looks at the block any more.
  static bool all_gone(std::byte* block, int members);
  static void count_cleared(std::byte* block, int members);
  static bool all_cleared(std::byte* block, int members);

  // `owner` is the one whose heap the block is from.
  MemoryChannel(MemoryTransport& transport, std::span<const int> members, std::byte* block, bool owner);
  ~MemoryChannel() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  int world_rank(int member) const override { return members_[member]; }
  void send(int peer, const CallId& call, std::span<const std::byte> bytes, Ticket& ticket) override;
  void recv(int peer, const CallId& call, const Sink& sink, Ticket& ticket) override;
  bool progress() override;
  void idle(Duration longest) override;
  void cancel() noexcept override;
  int waiting_for() const override;
  Board* board() override { return &board_; }

 private:
  struct Outgoing {
    CallId call;
    std::span<const std::byte> bytes;
    Ticket* ticket;
    bool started = false;
    std::size_t sent = 0;
    std::uint64_t acknowledged_at = 0;  // by address: done when the ring was consumed up to here
  };
  struct Incoming {
    CallId call;
    Sink sink;
    Ticket* ticket;
    bool started = false;
    std::size_t received = 0;
  };

  Ring& ring(int from, int to) const;
  void knock(int peer);
  bool push(int peer);
  bool pull(int peer);
  bool start_message(Ring& ring, Outgoing& message);
  bool accept_message(int peer, Ring& ring, Incoming& message);

  // Constant after construction.
  MemoryTransport& transport_;
  std::vector<int> members_;
  int rank_ = 0;
  std::byte* block_;
  bool owner_;
  std::size_t capacity_;
  Board board_;
  // Used by the channel's one thread. A queue per peer, in the order posted.
  std::vector<std::deque<Outgoing>> outgoing_;
  std::vector<std::deque<Incoming>> incoming_;
  int posted_ = 0;
};

}  // namespace trireme::net

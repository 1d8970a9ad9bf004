// How ranks reach each other. A Transport is one rank's end of the world; a Channel is one independent path among a
// group of ranks. Everything above talks to these two; threads, processes and hosts differ only below.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/clock.h"

namespace trireme::net {

// What a rank says it is doing. It travels with every message, so that a disagreement is named, not guessed at.
// Plain bytes without padding: compared and sent as they are.
struct CallId {
  std::uint64_t sequence = 0;  // calls on this channel so far
  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t what = 0;  // a collective, or one of the values below
  std::uint8_t dtype = 0;
  std::uint8_t op = 0;
  std::uint8_t algorithm = 0;  // index in algorithms()
  bool operator==(const CallId&) const = default;

  static constexpr std::uint8_t kPointToPoint = 254;  // sequence holds the tag
  static constexpr std::uint8_t kNone = 255;
};
static_assert(sizeof(CallId) == 24);

// Where received bytes go: copied to `to`, or reduced into it. Pieces come in order, each a multiple of 64 bytes but
// for the last.
struct Sink {
  using Reduce = void (*)(void* into, const void* from, std::size_t elements);
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  Reduce reduce = nullptr;  // null: copy
  std::uint32_t element = 1;
};

// One posted send or receive. Owned by the caller, at a fixed address until done() is true or the channel is gone.
struct Ticket {
  bool done = false;
};

// Memory that peers on the same host may read and write. On tcp it is plain memory, aligned just the same.
class Heap {
 public:
  virtual ~Heap() = default;
  // 64-byte aligned and readable by every peer the transport can share memory with; contents undefined. Throws
  // Error when there is no more. Safe from any thread.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  virtual bool contains(const void* memory, std::size_t bytes) const noexcept = 0;
};

class Board;

// One path among `size()` ranks. Used by one thread at a time. Messages between two ranks arrive in the order sent.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int world_rank(int member) const = 0;

  // Post and return at once. The bytes must stay valid until the ticket is done. A receive whose next message from
  // `peer` has another CallId or length fails with Mismatch that names both calls.
  virtual void send(int peer, const CallId& call, std::span<const std::byte> bytes, Ticket& ticket) = 0;
  virtual void recv(int peer, const CallId& call, const Sink& sink, Ticket& ticket) = 0;

  // Moves what is posted; true if anything moved. Throws PeerLost, Mismatch, ProtocolError, Aborted.
  virtual bool progress() = 0;
  // Sleeps until something may have changed, at most `longest`; for when progress() found nothing for a while.
  virtual void idle(Duration longest) = 0;

  // Forgets every posted operation, so that tickets may go away after a failure. The channel is then unusable.
  virtual void cancel() noexcept = 0;

  // A posted send or receive that is not done: the peer (in this group) waited for, for error messages; -1 if none.
  virtual int waiting_for() const = 0;

  // Present where peers' memory can be read.
  virtual Board* board() { return nullptr; }

  // Payload bytes and messages this rank has sent on this channel. From any thread.
  struct Counters {
    std::uint64_t bytes_sent = 0;
    std::uint64_t messages_sent = 0;
  };
  Counters counters() const {
    return {bytes_sent_.load(std::memory_order_relaxed), messages_sent_.load(std::memory_order_relaxed)};
  }

 protected:
  // By the thread that uses the channel.
  void count_message(std::size_t bytes) {
    bytes_sent_.store(bytes_sent_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    messages_sent_.store(messages_sent_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> bytes_sent_ = 0, messages_sent_ = 0;
};

// What another rank is up to, as far as it can be told.
struct PeerState {
  enum class Life { answers, silent, dead } life = Life::answers;
  CallId call;           // the last one it began
  bool in_call = false;  // whether it is still in it
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;  // "inproc", "shm", "tcp"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // How many of them share this host's cores: with more ranks than cores, waiting must not spin.
  virtual int ranks_on_host() const { return size(); }

  // Opens a path among `members` (world ranks, the same list and id on each; collective over them). `id` must not be
  // in use among them.
  virtual std::unique_ptr<Channel> open(std::uint64_t id, std::span<const int> members, Deadline deadline) = 0;
  virtual Heap& heap() = 0;

  // Tells every peer why this rank gives up: their waits throw Aborted with this text. The first reason wins.
  virtual void abort(std::string_view why) noexcept = 0;
  // Throws PeerLost or Aborted if the world is broken. A load and a branch when it is not.
  virtual void check() = 0;
  // As check(), looking harder, and throws PeerLost if world rank `awaited` has left, even cleanly. For waits that
  // last: some microseconds.
  virtual void check_peer(int awaited) {
    (void)awaited;
    check();
  }

  // Publishes what this rank is doing, for the others' survey. Cheap.
  virtual void enter(const CallId& call) noexcept = 0;
  virtual void leave() noexcept = 0;
  // What every rank is doing, by world rank; those that do not answer within the deadline are `silent`.
  virtual std::vector<PeerState> survey(Deadline deadline) = 0;
};

}  // namespace trireme::net

// Inside a Communicator: for the parts of Trireme that measure and explain it.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "trireme/collective/cost/select.h"
#include "trireme/collective/run/call_queue.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/collective/run/messenger.h"
#include "trireme/net/transport.h"

namespace trireme {

// One rank's end of the world, shared by all communicators of the rank.
struct WorldEnd {
  std::unique_ptr<net::Transport> transport;
  std::atomic<std::uint32_t> next_group{1};
};

// Keeps what a Work waits on alive.
struct Work::State {
  std::shared_ptr<WorldEnd> world;
  std::shared_ptr<CallQueue> lane;       // a collective, or
  std::shared_ptr<Messenger> messenger;  // a message
  Messenger::Handle message;
};

struct Communicator::Impl {
  // Collective over `members`. `id` is this group's, the same on each of them. Without a tuning, rank 0's is used.
  Impl(std::shared_ptr<WorldEnd> world, std::vector<int> members, std::uint64_t id, const Options& options,
       const std::optional<Tuning>& tuning);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members.size()); }
  Tuning agree_on_tuning();

  std::shared_ptr<WorldEnd> world;
  std::vector<int> members;  // world ranks
  int rank_;
  Options options;
  CallQueue::Settings settings;
  std::vector<std::shared_ptr<Work::State>> lanes;  // as Works hold them
  std::shared_ptr<Messenger> messenger;
  std::optional<Selector> selector;
  std::size_t in_turn = 1;  // the first so many lanes take calls; changed by all members between the same two calls
  std::uint64_t calls = 0;
};

// The communicator of the whole world. Collective over it.
Communicator join_world(std::unique_ptr<net::Transport> transport, const Options& options);

// Runs `body` as every rank of `world`, one thread each, and waits for all; rethrows the first error.
void run_ranks(std::vector<std::unique_ptr<net::Transport>> world, const std::function<void(Communicator&)>& body,
               const Options& options);

}  // namespace trireme

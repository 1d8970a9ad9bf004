#include "trireme/net/memory/memory_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <string>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/net/memory/memory_channel.h"

namespace trireme::net {
namespace {

// Runs `ready` until it is true; throws Timeout with `what` when the deadline passes.
template <typename Ready>
void poll_until(Ready&& ready, Transport& transport, int awaited, Deadline deadline, const std::string& what) {
  for (int i = 0; !ready(); ++i) {
    if (i < 1000) {
      sched_yield();
      continue;
    }
    try {
      transport.check_peer(awaited);
    } catch (const PeerLost&) {
      if (ready()) return;  // it did its part before it left
      throw;
    }
    if (deadline.passed()) throw Timeout(awaited, what);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Whether a process is stopped by a signal or a debugger.
bool process_stopped(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  auto name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && std::toupper(line[name_end + 2]) == 'T';
}

}  // namespace

MemoryTransport::MemoryTransport(Parts parts) : parts_(std::move(parts)) {
  auto& record = parts_.control->record(rank());
  record.pid.store(getpid(), std::memory_order_relaxed);
  CallId none;
  none.what = CallId::kNone;
  enter(none);
  leave();
  record.life.store(RankRecord::kHere, std::memory_order_release);
}

// What peers may still read stays: threads share heaps that live as long as the last of them, processes have mappings
// of their own.
MemoryTransport::~MemoryTransport() {
  sweep();
  parts_.control->record(rank()).life.store(RankRecord::kLeft, std::memory_order_release);
  for (int fd : parts_.process_fds) {
    if (fd >= 0) close(fd);
  }
}

void MemoryTransport::retire(Retired left) noexcept {
  {
    MutexLock lock(mutex_);
    retired_.push_back(left);
  }
  sweep();
}

// Releases what nobody uses any more of it. Who has no stage has nothing to wait for, unless
// the block is its own.
void MemoryTransport::release(Retired& left) noexcept {
  if (!left.cleared) {
    if (left.stage != nullptr) {
      if (!MemoryChannel::all_gone(left.block, left.members)) return;
      heap().release(left.stage);
    }
    MemoryChannel::count_cleared(left.block, left.members);
    left.cleared = true;
  }
  if (left.owner && !MemoryChannel::all_cleared(left.block, left.members)) return;
  if (left.owner) heap().release(left.block);
  left.released = true;
}

void MemoryTransport::sweep() noexcept {
  MutexLock lock(mutex_);
  for (Retired& left : retired_) release(left);
  std::erase_if(retired_, [](const Retired& left) { return left.released; });
}

std::unique_ptr<Channel> MemoryTransport::open(std::uint64_t id, std::span<const int> members, Deadline deadline) {
  sweep();
  std::uint64_t address = 0;
  const int leader = members[0];
  if (leader == rank()) {
    auto bytes = MemoryChannel::bytes_for(static_cast<int>(members.size()));
    std::byte* block = heap().allocate(bytes);
    MemoryChannel::format(block, static_cast<int>(members.size()));
    address = publish_channel(id, members.size(), space().address_of(block, bytes));
  } else {
    address = find_channel(id, members.size(), leader, deadline);
  }
  return std::make_unique<MemoryChannel>(*this, members, space().at(address), leader == rank());
}

// Invariant: a record belongs to one channel from the leader's claim of `id` until the last member counts itself in,
// which frees it. Ids in flight are distinct, so a member finds only its own.
std::uint64_t MemoryTransport::publish_channel(std::uint64_t id, std::size_t members, std::uint64_t address) {
  if (members == 1) return address;
  for (auto& record : parts_.control->channels) {
    std::uint64_t unused = 0;
    if (!record.id.compare_exchange_strong(unused, id + 1, std::memory_order_acq_rel)) continue;
    record.joined.store(1, std::memory_order_relaxed);
    record.address.store(address, std::memory_order_release);
    return address;
  }
  throw Error(fmt::format("too many channels are being opened at once (at most {})", MemoryControl::kChannels));
}

std::uint64_t MemoryTransport::find_channel(std::uint64_t id, std::size_t members, int leader, Deadline deadline) {
  ChannelRecord* found = nullptr;
  std::uint64_t address = 0;
  auto ready = [&] {
    for (auto& record : parts_.control->channels) {
      if (record.id.load(std::memory_order_acquire) != id + 1) continue;
      found = &record;
      return (address = record.address.load(std::memory_order_acquire)) != 0;
    }
    return false;
  };
  poll_until(
      ready, *this, leader, deadline,
      fmt::format("rank {} waited {:g} s for rank {} to open channel {}", rank(), deadline.span_seconds(), leader, id));
  if (found->joined.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    found->address.store(0, std::memory_order_relaxed);
    found->id.store(0, std::memory_order_release);
  }
  return address;
}

void MemoryTransport::abort(std::string_view why) noexcept {
  parts_.control->failure.fill(FailureRecord::kAborted, rank(), why);
}

void MemoryTransport::check() {
  const auto& failure = parts_.control->failure;
  if (!failure.ready()) [[likely]]
    return;
  if (failure.kind == FailureRecord::kPeerLost) throw PeerLost(failure.rank, failure.text);
  throw Aborted(fmt::format("rank {} gave up: {}", failure.rank, failure.text));
}

bool MemoryTransport::process_ended(int rank) const {
  if (parts_.process_fds.empty() || rank == parts_.rank) return false;
  pollfd entry{parts_.process_fds[rank], POLLIN, 0};
  return entry.fd < 0 || (poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0);
}

void MemoryTransport::check_peer(int awaited) {
  check();
  for (int peer = 0; peer < size(); ++peer) {
    const auto& record = parts_.control->record(peer);
    if (!process_ended(peer) || record.life.load(std::memory_order_acquire) == RankRecord::kLeft) continue;
    parts_.control->failure.fill(
        FailureRecord::kPeerLost, peer,
        fmt::format("rank {} died (process {})", peer, record.pid.load(std::memory_order_relaxed)));
    check();
  }
  if (awaited >= 0 && awaited != rank() &&
      parts_.control->record(awaited).life.load(std::memory_order_acquire) == RankRecord::kLeft) {
    check();
    throw PeerLost(awaited, fmt::format("rank {} has left the job, and rank {} waits for it", awaited, rank()));
  }
}

void MemoryTransport::enter(const CallId& call) noexcept {
  auto& record = parts_.control->record(rank());
  std::uint64_t words[3];
  static_assert(sizeof words == sizeof call);
  std::memcpy(words, &call, sizeof words);
  for (int i = 0; i < 3; ++i) record.call[i].store(words[i], std::memory_order_relaxed);
  record.in_call.store(1, std::memory_order_relaxed);
}

void MemoryTransport::leave() noexcept { parts_.control->record(rank()).in_call.store(0, std::memory_order_relaxed); }

std::vector<PeerState> MemoryTransport::survey(Deadline) {
  std::vector<PeerState> states(size());
  for (int peer = 0; peer < size(); ++peer) {
    const auto& record = parts_.control->record(peer);
    std::uint64_t words[3];
    for (int i = 0; i < 3; ++i) words[i] = record.call[i].load(std::memory_order_relaxed);
    std::memcpy(&states[peer].call, words, sizeof words);
    states[peer].in_call = record.in_call.load(std::memory_order_relaxed) != 0;
    auto life = record.life.load(std::memory_order_acquire);
    if (process_ended(peer) || life != RankRecord::kHere) {
      states[peer].life = PeerState::Life::dead;
    } else if (!parts_.process_fds.empty() && process_stopped(record.pid.load(std::memory_order_relaxed))) {
      states[peer].life = PeerState::Life::silent;
    }
  }
  return states;
}

}  // namespace trireme::net

#include "trireme/net/memory/memory_channel.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "trireme/base/error.h"
#include "trireme/net/call.h"
#include "trireme/net/memory/memory_transport.h"

namespace trireme::net {
namespace {

// What a message in a ring starts with, one cache line. The payload follows, or lies at `address`.
struct alignas(64) Header {
  CallId call;
  std::uint64_t length;
  std::uint64_t address;  // 0: the payload follows in the ring
};
static_assert(sizeof(Header) == Ring::kLine);

// From this size on a message in the heap is passed by address rather than copied through the ring: the second copy
// costs more than to wait until the first was made.
constexpr std::size_t kByAddress = 2048;

// A block is: posts (2 per rank), marks (1), bells (1), counts of those gone and cleared, rings (one per ordered pair).
struct Layout {
  explicit Layout(int members) : n(members) {}
  std::size_t n;
  std::size_t posts() const { return 0; }
  std::size_t marks() const { return posts() + 2 * n * sizeof(Post); }
  std::size_t bells() const { return marks() + n * sizeof(Mark); }
  std::size_t gone() const { return bells() + n * sizeof(Signal); }
  std::size_t cleared() const { return gone() + sizeof(Signal); }
  std::size_t rings() const { return cleared() + sizeof(Signal); }
  std::size_t capacity() const { return n <= 8 ? 256 << 10 : n <= 16 ? 64 << 10 : 16 << 10; }
  std::size_t ring_bytes() const { return sizeof(Ring) + capacity(); }
  std::size_t total() const { return rings() + n * n * ring_bytes(); }
};

template <typename T>
T* at(std::byte* block, std::size_t offset) {
  return reinterpret_cast<T*>(block + offset);
}

}  // namespace

std::size_t MemoryChannel::bytes_for(int members) { return Layout(members).total(); }

void MemoryChannel::format(std::byte* block, int members) {
  Layout layout(members);
  for (int i = 0; i < 2 * members; ++i) new (&at<Post>(block, layout.posts())[i].sequence) Counter{};
  for (int i = 0; i < members; ++i) new (block + layout.marks() + i * sizeof(Mark)) Mark{};
  for (int i = 0; i < members; ++i) new (block + layout.bells() + i * sizeof(Signal)) Signal{};
  new (block + layout.gone()) Signal{};
  new (block + layout.cleared()) Signal{};
  for (int i = 0; i < members * members; ++i) new (block + layout.rings() + i * layout.ring_bytes()) Ring{};
}

MemoryChannel::MemoryChannel(MemoryTransport& transport, std::span<const int> members, std::byte* block, bool owner)
    : transport_(transport),
      members_(members.begin(), members.end()),
      rank_(static_cast<int>(std::find(members.begin(), members.end(), transport.rank()) - members.begin())),
      block_(block),
      owner_(owner),
      capacity_(Layout(size()).capacity()),
      board_(rank_, size(), transport.space(), at<Post>(block, Layout(size()).posts()),
             at<Mark>(block, Layout(size()).marks())),
      outgoing_(members.size()),
      incoming_(members.size()) {}

// A slower member may still read my stage, or the block: both stay until it has let go.
MemoryChannel::~MemoryChannel() {
  at<Signal>(block_, Layout(size()).gone())->value.fetch_add(1, std::memory_order_acq_rel);
  transport_.retire({.block = block_, .members = size(), .stage = board_.left_stage(), .owner = owner_});
}

bool MemoryChannel::all_gone(std::byte* block, int members) {
  auto gone = at<Signal>(block, Layout(members).gone())->value.load(std::memory_order_acquire);
  return gone == static_cast<std::uint64_t>(members);
}

void MemoryChannel::count_cleared(std::byte* block, int members) {
  at<Signal>(block, Layout(members).cleared())->value.fetch_add(1, std::memory_order_acq_rel);
}

bool MemoryChannel::all_cleared(std::byte* block, int members) {
  auto cleared = at<Signal>(block, Layout(members).cleared())->value.load(std::memory_order_acquire);
  return cleared == static_cast<std::uint64_t>(members);
}

Ring& MemoryChannel::ring(int from, int to) const {
  Layout layout(size());
  return *at<Ring>(block_, layout.rings() + (from * layout.n + to) * layout.ring_bytes());
}

// Wakes a peer that sleeps in idle().
void MemoryChannel::knock(int peer) {
  auto& bell = at<Signal>(block_, Layout(size()).bells())[peer];
  if (bell.sleepers.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  bell.value.fetch_add(1, std::memory_order_acq_rel);
  futex(bell.value, FUTEX_WAKE, INT32_MAX, nullptr);
}

void MemoryChannel::send(int peer, const CallId& call, std::span<const std::byte> bytes, Ticket& ticket) {
  ticket.done = false;
  outgoing_[peer].push_back({call, bytes, &ticket});
  ++posted_;
  count_message(bytes.size());
  push(peer);
}

void MemoryChannel::recv(int peer, const CallId& call, const Sink& sink, Ticket& ticket) {
  ticket.done = false;
  incoming_[peer].push_back({call, sink, &ticket});
  ++posted_;
  pull(peer);
}

bool MemoryChannel::progress() {
  transport_.check();
  bool moved = false;
  for (int peer = 0; posted_ > 0 && peer < size(); ++peer) {
    if (!outgoing_[peer].empty()) moved |= push(peer);
    if (!incoming_[peer].empty()) moved |= pull(peer);
  }
  return moved;
}

bool MemoryChannel::start_message(Ring& ring, Outgoing& message) {
  auto room = ring.room(capacity_);
  if (room.size() < sizeof(Header)) return false;
  Header header{message.call, message.bytes.size(), 0};
  if (message.bytes.size() >= kByAddress) {
    header.address = transport_.space().address_of(message.bytes.data(), message.bytes.size());
  }
  std::memcpy(room.data(), &header, sizeof header);
  ring.commit(sizeof header);
  message.started = true;
  if (header.address != 0) {
    message.sent = message.bytes.size();
    message.acknowledged_at = ring.written.load(std::memory_order_relaxed);
  }
  return true;
}

// Moves the messages to `peer` as far as the ring has room. Messages by address stay in line until consumed.
bool MemoryChannel::push(int peer) {
  auto& queue = outgoing_[peer];
  auto& to = ring(rank_, peer);
  bool moved = false;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    auto& message = queue[i];
    if (!message.started) {
      if (!start_message(to, message)) break;
      moved = true;
    }
    while (message.sent < message.bytes.size()) {
      auto room = to.room(capacity_);
      auto piece = std::min(room.size(), message.bytes.size() - message.sent);
      if (piece == 0) break;
      std::memcpy(room.data(), message.bytes.data() + message.sent, piece);
      to.commit(piece);
      message.sent += piece;
      moved = true;
    }
    if (message.sent < message.bytes.size()) break;
  }
  while (!queue.empty() && queue.front().started && queue.front().sent == queue.front().bytes.size() &&
         to.consumed.load(std::memory_order_acquire) >= queue.front().acknowledged_at) {
    queue.front().ticket->done = true;
    queue.pop_front();
    --posted_;
    moved = true;
  }
  if (moved) knock(peer);
  return moved;
}

bool MemoryChannel::accept_message(int peer, Ring& ring, Incoming& message) {
  auto ready = ring.ready(capacity_);
  if (ready.size() < sizeof(Header)) return false;
  Header header;
  std::memcpy(&header, ready.data(), sizeof header);
  if (header.call != message.call || header.length != message.sink.bytes) {
    throw Mismatch(describe_mismatch(world_rank(rank_), message.call, message.sink.bytes, world_rank(peer), header.call,
                                     header.length));
  }
  if (header.address != 0) {
    const auto& sink = message.sink;
    const std::byte* from = transport_.space().at(header.address);
    if (sink.reduce != nullptr) {
      sink.reduce(sink.to, from, sink.bytes / sink.element);
    } else {
      std::memcpy(sink.to, from, sink.bytes);
    }
    message.received = sink.bytes;
  }
  ring.release(sizeof header);
  message.started = true;
  return true;
}

// Moves what `peer` has sent to where it was asked for.
bool MemoryChannel::pull(int peer) {
  auto& queue = incoming_[peer];
  auto& from = ring(peer, rank_);
  bool moved = false;
  while (!queue.empty()) {
    auto& message = queue.front();
    const auto& sink = message.sink;
    if (!message.started) {
      if (!accept_message(peer, from, message)) break;
      moved = true;
    }
    while (message.received < sink.bytes) {
      auto ready = from.ready(capacity_);
      auto piece = std::min(ready.size(), sink.bytes - message.received);
      if (piece == 0) break;
      auto* to = sink.to + message.received;
      if (sink.reduce != nullptr) {
        sink.reduce(to, ready.data(), piece / sink.element);
      } else {
        std::memcpy(to, ready.data(), piece);
      }
      from.release(piece);
      message.received += piece;
      moved = true;
    }
    if (message.received < sink.bytes) break;
    message.ticket->done = true;
    queue.pop_front();
    --posted_;
  }
  if (moved) knock(peer);
  return moved;
}

void MemoryChannel::idle(Duration longest) {
  auto& bell = at<Signal>(block_, Layout(size()).bells())[rank_];
  auto seen = bell.value.load(std::memory_order_acquire);
  bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool moved = false;
  try {
    moved = progress();
  } catch (...) {
    bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    throw;
  }
  if (!moved) {
    timespec length{0, std::min<long>(longest.count(), kNapNanoseconds)};
    futex(bell.value, FUTEX_WAIT, static_cast<std::uint32_t>(seen), &length);
  }
  bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void MemoryChannel::cancel() noexcept {
  for (auto& queue : outgoing_) queue.clear();
  for (auto& queue : incoming_) queue.clear();
  posted_ = 0;
}

int MemoryChannel::waiting_for() const {
  for (int peer = 0; peer < size(); ++peer) {
    if (!incoming_[peer].empty()) return peer;
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (!outgoing_[peer].empty()) return peer;
  }
  return -1;
}

}  // namespace trireme::net

#include "trireme/net/tcp/tcp_channel.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/files/checksum.h"
#include "trireme/net/call.h"

namespace trireme::net {
namespace {

constexpr std::size_t kBuffer = 16 << 10;    // read ahead per peer: whole small messages, several at once
constexpr std::size_t kScratch = 128 << 10;  // reductions pass through it
constexpr std::size_t kPiece = 64;           // sinks reduce multiples of this, but for the last piece
// One progress() moves at most about this much per peer and direction, so that both directions stay busy.
constexpr std::size_t kTurn = 512 << 10;
// Of a long message so much is waited for at once, of a short one all: who sleeps is not woken for every packet.
constexpr std::size_t kWorthWaking = 64 << 10, kShort = 4 << 10;

}  // namespace

TcpChannel::TcpChannel(int world_rank, std::vector<TcpMember> members, bool payload_checksum,
                       std::shared_ptr<Failure> failure)
    : payload_checksum_(payload_checksum), failure_(std::move(failure)), peers_(members.size()) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].world_rank == world_rank) rank_ = static_cast<int>(i);
    peers_[i].world_rank = members[i].world_rank;
    peers_[i].fd = std::move(members[i].fd);
  }
}

TcpChannel::Peer& TcpChannel::active_peer(int index) {
  if (cancelled_) throw ProtocolError("a cancelled channel cannot be used any more");
  TRIREME_CHECK(index >= 0 && index < size() && index != rank_);
  Peer& peer = peers_[static_cast<std::size_t>(index)];
  if (!peer.listed) {
    peer.listed = true;
    active_.push_back(index);
  }
  return peer;
}

void TcpChannel::send(int index, const CallId& call, std::span<const std::byte> bytes, Ticket& ticket) {
  ticket.done = false;
  Peer& peer = active_peer(index);
  peer.sends.push({call, bytes, &ticket});
  // Most messages leave at once. A broken connection shows again in progress().
  if (peer.sends.size() == 1 && !failure_->is_set()) {
    try {
      push(peer);
    } catch (const Error&) {
    }
  }
}

void TcpChannel::recv(int index, const CallId& call, const Sink& sink, Ticket& ticket) {
  ticket.done = false;
  active_peer(index).recvs.push({call, sink, &ticket});
}

bool TcpChannel::progress() {
  failure_->check();
  bool moved = false;
  for (std::size_t i = 0; i < active_.size();) {
    Peer& peer = peers_[static_cast<std::size_t>(active_[i])];
    if (!peer.sends.empty()) moved |= push(peer);
    if (!peer.recvs.empty()) moved |= pull(peer);
    if (peer.sends.empty() && peer.recvs.empty()) {
      peer.listed = false;
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

bool TcpChannel::push(Peer& peer) {
  std::size_t turn = 0;
  while (!peer.sends.empty() && turn < kTurn) {
    const Outgoing& message = peer.sends.front();
    if (!peer.begun) {
      peer.out = FrameHeader{.call = message.call, .length = message.bytes.size(), .sequence = peer.next_out++};
      if (payload_checksum_) {
        peer.out.flags = kPayloadChecked;
        peer.out.payload_sum = checksum32(message.bytes.data(), message.bytes.size());
      }
      seal(peer.out);
      peer.begun = true;
      peer.sent = 0;
    }
    std::size_t from_header = std::min(peer.sent, kHeaderBytes);
    auto payload = message.bytes.subspan(peer.sent - from_header);
    payload = payload.first(std::min(payload.size(), kTurn));
    iovec parts[2] = {{reinterpret_cast<std::byte*>(&peer.out) + from_header, kHeaderBytes - from_header},
                      {const_cast<std::byte*>(payload.data()), payload.size()}};
    msghdr packet{};
    packet.msg_iov = parts;
    packet.msg_iovlen = payload.empty() ? 1 : 2;
    ssize_t sent = ::sendmsg(peer.fd.get(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) break;
      lost(peer, errno);
    }
    turn += static_cast<std::size_t>(sent);
    peer.sent += static_cast<std::size_t>(sent);
    if (peer.sent == kHeaderBytes + message.bytes.size()) {
      count_message(message.bytes.size());
      message.ticket->done = true;
      peer.begun = false;
      peer.sends.pop();
    }
  }
  return turn > 0;
}

bool TcpChannel::pull(Peer& peer) {
  bool moved = false;
  std::size_t turn = 0;
  while (!peer.recvs.empty() && turn < kTurn) {
    if (!peer.known) {
      while (peer.end - peer.begin < kHeaderBytes) {
        if (!read_ahead(peer)) return moved;
        moved = true;
      }
      begin_message(peer);
    }
    std::size_t before = peer.received;
    if (peer.begin < peer.end && peer.received < peer.in.length) take_buffered(peer);
    if (peer.received < peer.in.length && !read_payload(peer)) return moved || peer.received > before;
    moved = true;
    turn += peer.received - before;
    if (peer.received == peer.in.length) end_message(peer);
  }
  return moved;
}

// Bytes read, 0 when there are none now.
ssize_t TcpChannel::read(Peer& peer, std::byte* to, std::size_t bytes) {
  ssize_t got = ::recv(peer.fd.get(), to, bytes, MSG_DONTWAIT);
  if (got > 0) return got;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  lost(peer, got < 0 ? errno : 0);
}

// Reads at least a header. Small messages come whole, with those behind them; of a large one only the beginning, as
// what is buffered is copied twice.
bool TcpChannel::read_ahead(Peer& peer) {
  if (!peer.buffer) peer.buffer = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  std::size_t held = peer.end - peer.begin;
  if (peer.begin > 0) std::memmove(peer.buffer.get(), peer.buffer.get() + peer.begin, held);
  peer.begin = 0;
  peer.end = held;
  bool small = peer.recvs.front().sink.bytes <= kBuffer - kHeaderBytes;
  std::size_t want = small ? kBuffer : kHeaderBytes;
  ssize_t got = read(peer, peer.buffer.get() + held, want - held);
  peer.end += static_cast<std::size_t>(got);
  return got > 0;
}

void TcpChannel::begin_message(Peer& peer) {
  std::memcpy(&peer.in, peer.buffer.get() + peer.begin, kHeaderBytes);
  peer.begin += kHeaderBytes;
  int ours = peers_[static_cast<std::size_t>(rank_)].world_rank;
  if (auto fault = fault_of(peer.in); !fault.empty()) {
    throw ProtocolError(fmt::format("what rank {} received from rank {} {}", ours, peer.world_rank, fault));
  }
  if (peer.in.kind != FrameKind::data || peer.in.sequence != peer.next_in) {
    throw ProtocolError(fmt::format("rank {} received frame {} of kind {} from rank {} where message {} was due", ours,
                                    peer.in.sequence, static_cast<int>(peer.in.kind), peer.world_rank, peer.next_in));
  }
  const Incoming& posted = peer.recvs.front();
  if (peer.in.call != posted.call || peer.in.length != posted.sink.bytes) {
    throw Mismatch(
        describe_mismatch(ours, posted.call, posted.sink.bytes, peer.world_rank, peer.in.call, peer.in.length));
  }
  ++peer.next_in;
  peer.known = true;
  peer.received = 0;
  peer.carried = 0;
  if (peer.in.flags & kPayloadChecked) peer.sum.reset();
}

void TcpChannel::take_buffered(Peer& peer) {
  const Sink& sink = peer.recvs.front().sink;
  std::size_t bytes = std::min(peer.end - peer.begin, peer.in.length - peer.received);
  const std::byte* from = peer.buffer.get() + peer.begin;
  peer.begin += bytes;
  if (sink.reduce) {
    std::memcpy(scratch() + peer.carried, from, bytes);
    return reduce_scratch(peer, bytes);
  }
  std::memcpy(sink.to + peer.received, from, bytes);
  if (peer.in.flags & kPayloadChecked) peer.sum.add(from, bytes);
  peer.received += bytes;
}

bool TcpChannel::read_payload(Peer& peer) {
  const Sink& sink = peer.recvs.front().sink;
  std::size_t left = peer.in.length - peer.received;
  if (sink.reduce) {
    ssize_t got = read(peer, scratch() + peer.carried, std::min(left, kScratch - peer.carried));
    if (got > 0) reduce_scratch(peer, static_cast<std::size_t>(got));
    return got > 0;
  }
  std::byte* to = sink.to + peer.received;
  ssize_t got = read(peer, to, std::min(left, kTurn));
  if (peer.in.flags & kPayloadChecked) peer.sum.add(to, static_cast<std::size_t>(got));
  peer.received += static_cast<std::size_t>(got);
  return got > 0;
}

std::byte* TcpChannel::scratch() {
  if (!scratch_) {
    scratch_memory_ = std::make_unique_for_overwrite<std::byte[]>(kScratch + kPiece);
    scratch_ = scratch_memory_.get() + (-reinterpret_cast<std::uintptr_t>(scratch_memory_.get()) & (kPiece - 1));
  }
  return scratch_;
}

// `fresh` bytes lie in the scratch behind room for those carried over: reduces whole pieces, carries the rest.
void TcpChannel::reduce_scratch(Peer& peer, std::size_t fresh) {
  const Sink& sink = peer.recvs.front().sink;
  if (peer.in.flags & kPayloadChecked) peer.sum.add(scratch_ + peer.carried, fresh);
  std::memcpy(scratch_, peer.carry.data(), peer.carried);
  std::size_t held = peer.carried + fresh;
  std::byte* into = sink.to + (peer.received - peer.carried);
  peer.received += fresh;
  std::size_t whole = peer.received == peer.in.length ? held : held / kPiece * kPiece;
  if (whole > 0) sink.reduce(into, scratch_, whole / sink.element);
  peer.carried = held - whole;
  std::memcpy(peer.carry.data(), scratch_ + whole, peer.carried);
}

void TcpChannel::end_message(Peer& peer) {
  const Incoming& posted = peer.recvs.front();
  if ((peer.in.flags & kPayloadChecked) && static_cast<std::uint32_t>(peer.sum.value()) != peer.in.payload_sum) {
    throw ProtocolError(fmt::format("{} bytes from rank {} in {} arrived with a wrong checksum", peer.in.length,
                                    peer.world_rank, describe(posted.call)));
  }
  posted.ticket->done = true;
  peer.known = false;
  peer.recvs.pop();
}

// A peer that gives up says why on its control connection: that is the better reason, if it comes at once.
void TcpChannel::lost(const Peer& peer, int error) {
  pollfd entry{failure_->fd(), POLLIN, 0};
  ::poll(&entry, 1, 500);
  failure_->check();
  const CallId* call = !peer.recvs.empty()   ? &peer.recvs.front().call
                       : !peer.sends.empty() ? &peer.sends.front().call
                                             : nullptr;
  throw PeerLost(peer.world_rank,
                 fmt::format("rank {} {} while rank {} waited for it in {}", peer.world_rank,
                             error == 0 ? "closed the connection" : std::strerror(error),
                             peers_[static_cast<std::size_t>(rank_)].world_rank, call ? describe(*call) : "nothing"));
}

// How many bytes must have come before the kernel calls the connection readable.
void TcpChannel::wake_at(Peer& peer) {
  std::size_t due = 0;
  if (peer.known) {
    due = peer.in.length - peer.received;
  } else if (!peer.recvs.empty()) {
    const std::size_t whole = kHeaderBytes + peer.recvs.front().sink.bytes;
    due = whole - std::min(whole, peer.end - peer.begin);
  }
  const int bytes = due > kShort ? static_cast<int>(std::min(due, kWorthWaking)) : 1;
  if (std::exchange(peer.wakes_at, bytes) == bytes) return;
  ::setsockopt(peer.fd.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

void TcpChannel::idle(Duration longest) {
  poll_set_.clear();
  poll_set_.push_back({failure_->fd(), POLLIN, 0});
  for (int index : active_) {
    Peer& peer = peers_[static_cast<std::size_t>(index)];
    wake_at(peer);
    short events = static_cast<short>((peer.recvs.empty() ? 0 : POLLIN) | (peer.sends.empty() ? 0 : POLLOUT));
    if (events) poll_set_.push_back({peer.fd.get(), events, 0});
  }
  auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  timespec span{static_cast<time_t>(seconds.count()), static_cast<long>((longest - seconds).count())};
  ::ppoll(poll_set_.data(), poll_set_.size(), &span, nullptr);
}

void TcpChannel::cancel() noexcept {
  cancelled_ = true;
  active_.clear();
  for (Peer& peer : peers_) {
    peer.sends.clear();
    peer.recvs.clear();
    peer.fd.close();
  }
}

int TcpChannel::waiting_for() const {
  for (int index : active_) {
    if (!peers_[static_cast<std::size_t>(index)].recvs.empty()) return index;
  }
  for (int index : active_) {
    if (!peers_[static_cast<std::size_t>(index)].sends.empty()) return index;
  }
  return -1;
}

}  // namespace trireme::net

// Waiting for what the control thread brings in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/error.h"
#include "trireme/net/tcp/control.h"

namespace trireme::net {
namespace {

constexpr std::uint64_t kMostPings = 64;  // unanswered, to one peer

}  // namespace

bool Control::wait(MutexLock& lock, Deadline deadline, const std::function<bool()>& done) {
  return changed_.wait_until(lock, Clock::now() + deadline.left(), done);
}

void Control::wait_all(Deadline deadline, std::string_view what, const std::function<bool(int)>& missing) {
  MutexLock lock(mutex_);
  std::vector<int> absent;
  bool complete = wait(lock, deadline, [&] {
    absent.clear();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != rank_ && missing(rank)) absent.push_back(rank);
    }
    return absent.empty() || failure_->is_set();
  });
  failure_->check();
  if (complete) return;
  std::string text = fmt::format("rank{} {} did not {} within {:g} s", absent.size() == 1 ? "" : "s",
                                 fmt::join(absent, ", "), what, deadline.span_seconds());
  if (!refusals_.empty()) text += "; " + refusals_.back();
  throw Timeout(absent.size() == 1 ? absent[0] : -1, text);
}

std::vector<std::string> Control::gather_contacts(Deadline deadline) {
  wait_all(deadline, "come to the rendezvous",
           [&](int rank) TRIREME_REQUIRES(mutex_) { return peers_[static_cast<std::size_t>(rank)].contact.empty(); });
  MutexLock lock(mutex_);
  std::vector<std::string> contacts;
  for (const Peer& peer : peers_) contacts.push_back(peer.contact);
  return contacts;
}

std::string Control::wait_contacts(Deadline deadline) {
  wait_all(deadline, "see the whole world arrive",
           [&](int rank) TRIREME_REQUIRES(mutex_) { return rank == 0 && contacts_.empty(); });
  MutexLock lock(mutex_);
  return contacts_;
}

void Control::wait_links(Deadline deadline) {
  wait_all(deadline, fmt::format("connect to rank {}", rank_), [&](int rank) TRIREME_REQUIRES(mutex_) {
    return peers_[static_cast<std::size_t>(rank)].state == Peer::State::absent;
  });
}

Fd Control::take(std::uint64_t channel, int peer, Deadline deadline) {
  auto key = std::make_pair(channel, peer);
  wait_all(deadline, fmt::format("open channel {} with rank {}", channel, rank_),
           [&](int rank) TRIREME_REQUIRES(mutex_) { return rank == peer && !arrivals_.contains(key); });
  MutexLock lock(mutex_);
  return std::move(arrivals_.extract(key).mapped());
}

std::vector<PeerState> Control::survey(Deadline deadline) {
  MutexLock lock(mutex_);
  std::vector<std::uint64_t> due(peers_.size(), 0);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (peer.state != Peer::State::here) continue;
    if (peer.pings - peer.pongs < kMostPings) {
      ++peer.pings;
      queue(peer, FrameKind::ping, {});
    }
    due[rank] = peer.pings;
  }
  wake();
  auto answered = [&](std::size_t rank) TRIREME_REQUIRES(mutex_) { return peers_[rank].pongs >= due[rank]; };
  wait(lock, deadline, [&]() TRIREME_REQUIRES(mutex_) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      if (peers_[rank].state == Peer::State::here && !answered(rank)) return false;
    }
    return true;
  });
  std::vector<PeerState> states(peers_.size());
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    states[rank].call = peer.call;
    states[rank].in_call = peer.in_call;
    if (!answered(rank)) states[rank].life = PeerState::Life::silent;
    if (peer.state != Peer::State::here) states[rank].life = PeerState::Life::dead;
  }
  MutexLock doing(doing_mutex_);
  states[static_cast<std::size_t>(rank_)] = {PeerState::Life::answers, call_, in_call_};
  return states;
}

}  // namespace trireme::net

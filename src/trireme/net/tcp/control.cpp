#include "trireme/net/tcp/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::net {
namespace {

constexpr std::size_t kMostReports = 8;
constexpr std::size_t kMostArrivals = 1 << 16;
constexpr auto kFarewell = std::chrono::seconds(1);

}  // namespace

Control::Control(int rank, int ranks, const Session& session, Fd listener, ListenerLimits limits,
                 std::shared_ptr<Failure> failure)
    : rank_(rank),
      ranks_(ranks),
      session_(session),
      failure_(std::move(failure)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(static_cast<std::size_t>(ranks)) {
  if (!wake_) throw Error(fmt::format("eventfd: {}", std::strerror(errno)));
  if (listener) listener_ = std::make_unique<Listener>(std::move(listener), session_, rank, ranks, limits);
  // Signals are for the program's own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Control::~Control() {
  {
    MutexLock lock(mutex_);
    for (Peer& peer : peers_) queue(peer, FrameKind::goodbye, {});
    wake();
    wait(lock, Deadline::in(kFarewell), [&]() TRIREME_REQUIRES(mutex_) {
      return std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.out.empty(); });
    });
  }
  thread_.request_stop();
  wake();
}

void Control::wake() noexcept {
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Control::run(std::stop_token stop) {
  std::vector<pollfd> set;
  std::vector<int> ranks;
  while (!stop.stop_requested()) {
    set.assign(1, {wake_.get(), POLLIN, 0});
    if (listener_) listener_->watch(set);
    std::size_t links = set.size();
    ranks.clear();
    {
      MutexLock lock(mutex_);
      for (int rank = 0; rank < ranks_; ++rank) {
        const Peer& peer = peers_[static_cast<std::size_t>(rank)];
        if (peer.state != Peer::State::here) continue;
        set.push_back({peer.fd.get(), static_cast<short>(peer.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
        ranks.push_back(rank);
      }
    }
    if (::poll(set.data(), set.size(), listener_ ? listener_->sleep_ms() : -1) < 0) continue;
    std::uint64_t count;
    if (set[0].revents) [[maybe_unused]]
      ssize_t got = ::read(wake_.get(), &count, sizeof count);
    if (listener_) {
      listener_->serve(
          std::span(set).subspan(1, links - 1), [&](const Link& link) { return admit(link); },
          [&](const Link& link, Fd fd) { seat(link, std::move(fd)); }, [&](const std::string& line) { report(line); });
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (set[links + i].revents == 0) continue;
      MutexLock lock(mutex_);
      Peer& peer = peers_[static_cast<std::size_t>(ranks[i])];
      if (set[links + i].revents & POLLOUT) flush(peer);
      if (peer.state == Peer::State::here && (set[links + i].revents & ~POLLOUT)) receive(ranks[i]);
    }
  }
}

Verdict Control::admit(const Link& link) {
  MutexLock lock(mutex_);
  if (link.purpose == Purpose::control) {
    bool absent = peers_[static_cast<std::size_t>(link.from)].state == Peer::State::absent;
    return absent ? Verdict::accepted : Verdict::rank_taken;
  }
  return arrivals_.size() < kMostArrivals ? Verdict::accepted : Verdict::not_ours;
}

void Control::seat(const Link& link, Fd fd) {
  MutexLock lock(mutex_);
  if (link.purpose == Purpose::control) {
    install(link.from, std::move(fd));
  } else {
    // A second one replaces the first: its maker gave that up.
    arrivals_[{link.channel, link.from}] = std::move(fd);
  }
  changed_.notify_all();
}

void Control::report(const std::string& line) {
  MutexLock lock(mutex_);
  if (++refused_ > kMostReports) return;
  refusals_.push_back(line);
  std::fprintf(stderr, "trireme: rank %d %s\n", rank_, line.c_str());
}

void Control::add(int peer, Fd fd) {
  MutexLock lock(mutex_);
  install(peer, std::move(fd));
  wake();
}

void Control::install(int peer, Fd fd) {
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  TRIREME_CHECK(entry.state == Peer::State::absent);
  entry.state = Peer::State::here;
  entry.fd = std::move(fd);
  entry.reader = std::make_unique<FrameReader>(ranks_);
}

void Control::tell(int peer, FrameKind kind, std::string_view payload) {
  MutexLock lock(mutex_);
  queue(peers_[static_cast<std::size_t>(peer)], kind, payload);
  wake();
}

void Control::queue(Peer& peer, FrameKind kind, std::string_view payload) {
  if (peer.state != Peer::State::here) return;
  FrameHeader header;
  header.kind = kind;
  header.length = payload.size();
  header.sequence = peer.sent++;
  if (kind == FrameKind::pong) {
    MutexLock lock(doing_mutex_);
    header.call = call_;
    header.flags = in_call_ ? kInCall : 0;
  }
  seal(header);
  peer.out.append(reinterpret_cast<const char*>(&header), sizeof header);
  peer.out.append(payload);
  flush(peer);
}

// A connection that broke is noticed by receive().
void Control::flush(Peer& peer) {
  while (!peer.out.empty()) {
    ssize_t sent = ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      peer.out.clear();
      break;
    }
    peer.out.erase(0, static_cast<std::size_t>(sent));
  }
  changed_.notify_all();
}

void Control::receive(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  try {
    while (peer.state == Peer::State::here) {
      auto space = peer.reader->space();
      ssize_t got = ::recv(peer.fd.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) {
        return lose(rank, got == 0 ? "its process ended or closed the connection" : std::strerror(errno));
      }
      if (auto frame = peer.reader->filled(static_cast<std::size_t>(got))) handle(rank, *frame);
    }
  } catch (const ProtocolError& error) {
    lose(rank, error.what());
  }
}

void Control::handle(int rank, const FrameReader::Frame& frame) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  switch (frame.header.kind) {
    case FrameKind::ping:
      queue(peer, FrameKind::pong, {});
      break;
    case FrameKind::pong:
      ++peer.pongs;
      peer.call = frame.header.call;
      peer.in_call = frame.header.flags & kInCall;
      break;
    case FrameKind::abort:
      failure_->aborted(fmt::format("rank {} gave up: {}", rank, frame.payload));
      break;
    case FrameKind::goodbye:
      peer.state = Peer::State::left;
      peer.out.clear();
      peer.fd.close();
      break;
    case FrameKind::contact:
      peer.contact = frame.payload;
      break;
    case FrameKind::contacts:
      if (rank != 0) throw ProtocolError("the list of contacts came from another rank than 0");
      contacts_ = frame.payload;
      break;
    case FrameKind::data:
      break;  // the reader lets none through
  }
  changed_.notify_all();
}

void Control::lose(int rank, const std::string& how) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.state = Peer::State::dead;
  peer.out.clear();
  peer.fd.close();
  failure_->lost(rank, fmt::format("rank {} is lost: {}", rank, how));
  changed_.notify_all();
}

void Control::abort(std::string_view why) noexcept {
  try {
    std::string text(why.substr(0, FrameReader::kLongestText));
    for (char& c : text) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    MutexLock lock(mutex_);
    failure_->aborted(fmt::format("this rank ({}) gave up: {}", rank_, text));
    if (std::exchange(abort_sent_, true)) return;
    for (Peer& peer : peers_) queue(peer, FrameKind::abort, text);
    changed_.notify_all();
    wake();
  } catch (...) {
    // Out of memory: the connections break when the process ends, which tells the others as well.
  }
}

void Control::enter(const CallId& call) noexcept {
  MutexLock lock(doing_mutex_);
  call_ = call;
  in_call_ = true;
}

void Control::leave() noexcept {
  MutexLock lock(doing_mutex_);
  in_call_ = false;
}

}  // namespace trireme::net

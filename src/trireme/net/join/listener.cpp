#include "trireme/net/join/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trireme::net {

struct Listener::Visitor {
  Visitor(Fd connection, const Address& from, const Listener& listener)
      : fd(std::move(connection)),
        address(from),
        keeper(listener.session_, listener.rank_, listener.ranks_),
        leave(Deadline::in(listener.limits_.patience)) {}

  // Exactly the bytes of the message that is due: nothing a stranger sends beyond it is ever read.
  std::span<std::byte> space() {
    auto whole =
        challenged ? std::as_writable_bytes(std::span(&proof, 1)) : std::as_writable_bytes(std::span(&hello, 1));
    return whole.subspan(filled);
  }
  bool send(const Reply& reply) const {
    return ::send(fd.get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
  }

  Fd fd;
  const Address address;
  Doorkeeper keeper;
  Deadline leave;
  const Clock::time_point since = Clock::now();
  Hello hello{};
  Proof proof{};
  bool challenged = false;
  std::size_t filled = 0;
};

Listener::Listener(Fd listener, const Session& session, int rank, int ranks, ListenerLimits limits)
    : listener_(std::move(listener)), session_(session), rank_(rank), ranks_(ranks), limits_(limits) {}
Listener::~Listener() = default;

void Listener::watch(std::vector<pollfd>& set) const {
  set.push_back({full_ ? -1 : listener_.get(), POLLIN, 0});
  for (const auto& visitor : visitors_) set.push_back({visitor->fd.get(), POLLIN, 0});
}

int Listener::sleep_ms() const {
  if (full_) return 20;
  return visitors_.empty() ? -1 : visitors_.front()->leave.left_ms() + 1;
}

void Listener::serve(std::span<const pollfd> ready, const Admit& admit, const Enter& enter, const Report& report) {
  for (std::size_t i = 0; i < visitors_.size(); ++i) {
    auto& visitor = visitors_[i];
    bool gone = ready[i + 1].revents != 0 && advance(*visitor, admit, enter, report) == Step::gone;
    if (gone || visitor->leave.passed()) visitor.reset();
  }
  std::erase_if(visitors_, [](const auto& visitor) { return !visitor; });
  if (full_ || ready[0].revents != 0) accept_all();
}

void Listener::accept_all() {
  full_ = false;
  while (true) {
    if (visitors_.size() >= limits_.places) {
      if (Clock::now() - visitors_.front()->since < limits_.grace) break;
      visitors_.pop_front();
    }
    Address from;
    from.length = sizeof from.storage;
    Fd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.length,
                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      break;  // no descriptors left: try again later
    }
    tune(fd.get());
    visitors_.push_back(std::make_unique<Visitor>(std::move(fd), from, *this));
  }
  full_ = true;
}

Listener::Step Listener::advance(Visitor& visitor, const Admit& admit, const Enter& enter, const Report& report) {
  auto space = visitor.space();
  ssize_t got = ::recv(visitor.fd.get(), space.data(), space.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Step::wait;
  if (got <= 0) return Step::gone;
  visitor.filled += static_cast<std::size_t>(got);
  if (static_cast<std::size_t>(got) < space.size()) return Step::wait;
  visitor.filled = 0;

  auto refuse = [&](Verdict verdict) {
    if (verdict != Verdict::not_ours) {
      const auto claim = limits_.ranked ? fmt::format(", which claims to be rank {}", visitor.hello.from) : "";
      report(fmt::format("refused {}{}: {}", to_string(visitor.address), claim, reason(verdict)));
    }
    return Step::gone;
  };
  if (!visitor.challenged) {
    visitor.challenged = true;
    Reply reply = visitor.keeper.challenge(visitor.hello);
    bool sent = visitor.send(reply);
    if (reply.verdict != Verdict::challenge) return refuse(reply.verdict);
    return sent ? Step::wait : Step::gone;
  }
  Verdict verdict = visitor.keeper.check(visitor.proof);
  if (verdict == Verdict::accepted) verdict = admit(visitor.keeper.claim());
  bool sent = visitor.send(visitor.keeper.conclude(verdict));
  if (verdict != Verdict::accepted) return refuse(verdict);
  if (sent) enter(visitor.keeper.claim(), std::move(visitor.fd));
  return Step::gone;
}

}  // namespace trireme::net

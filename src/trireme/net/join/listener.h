// The listening side of a rank: lets in who proves to hold the job key. Strangers, garbage and silence cost one of a
// bounded number of places for a bounded time, and never make a good peer wait for them.
#pragma once
#include <poll.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/socket.h"

namespace trireme::net {

struct ListenerLimits {
  Duration patience = std::chrono::seconds(5);  // for one peer to prove itself
  std::size_t places = 256;                     // unproven peers at a time
  Duration grace =
      std::chrono::milliseconds(250);  // when all places are taken, one held longer than this is given away
  bool ranked = true;                  // callers are ranks, and called so in reports
};

// Driven by one thread: watch(), poll, serve(). Never blocks.
class Listener {
 public:
  // Asked once a peer has proven itself: `accepted`, or why not.
  using Admit = std::function<Verdict(const Link&)>;
  using Enter = std::function<void(const Link&, Fd)>;
  // One line about a peer that speaks our protocol and was refused.
  using Report = std::function<void(const std::string&)>;

  // `session` must outlive the listener.
  Listener(Fd listener, const Session& session, int rank, int ranks, ListenerLimits limits);
  ~Listener();

  // Appends what to poll for. serve() takes the same entries back.
  void watch(std::vector<pollfd>& set) const;
  void serve(std::span<const pollfd> ready, const Admit& admit, const Enter& enter, const Report& report);
  // Until serve() must be called even if nothing happens; -1: no need.
  int sleep_ms() const;
  std::size_t visitors() const { return visitors_.size(); }

 private:
  struct Visitor;
  enum class Step { wait, gone };
  void accept_all();
  Step advance(Visitor& visitor, const Admit& admit, const Enter& enter, const Report& report);

  const Fd listener_;
  const Session& session_;
  const int rank_, ranks_;
  const ListenerLimits limits_;
  std::deque<std::unique_ptr<Visitor>> visitors_;  // oldest first
  bool full_ = false;                              // accepting pauses until a place is free
};

}  // namespace trireme::net

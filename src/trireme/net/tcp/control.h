// One control connection to every peer, and one thread that watches them all: it sleeps in poll until a peer asks what
// we do, gives up, leaves or dies, or until somebody connects to its listener. Collectives never pass here.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/net/failure.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/join/listener.h"
#include "trireme/net/tcp/frame.h"
#include "trireme/net/transport.h"

namespace trireme::net {

class Control {
 public:
  // Takes the rank's listener (none in a world of one) and starts the thread.
  Control(int rank, int ranks, const Session& session, Fd listener, ListenerLimits limits,
          std::shared_ptr<Failure> failure);
  // Says goodbye to everyone, waiting a second at most for it to be on its way.
  ~Control();

  // An authenticated control connection that this rank made.
  void add(int peer, Fd fd);
  // Queues a frame; what the socket takes at once leaves on the caller's thread.
  void tell(int peer, FrameKind kind, std::string_view payload);

  // The waits of the rendezvous. They throw when the world breaks, Timeout naming the ranks missing.
  std::vector<std::string> gather_contacts(Deadline deadline);  // rank 0: by rank, from everyone's contact frame
  std::string wait_contacts(Deadline deadline);                 // others: what rank 0 sent to all
  void wait_links(Deadline deadline);                           // until every peer has its control connection

  // The connection that `peer` made for `channel`, when it has come.
  Fd take(std::uint64_t channel, int peer, Deadline deadline);

  void abort(std::string_view why) noexcept;
  void enter(const CallId& call) noexcept;
  void leave() noexcept;
  std::vector<PeerState> survey(Deadline deadline);

 private:
  struct Peer {
    enum class State { absent, here, left, dead } state = State::absent;
    Fd fd;
    std::unique_ptr<FrameReader> reader;
    std::string out;  // bytes that the socket did not take yet
    std::uint64_t sent = 0;
    std::uint64_t pings = 0, pongs = 0;
    CallId call{.what = CallId::kNone};
    bool in_call = false;
    std::string contact;
  };

  void run(std::stop_token stop);
  void wake() noexcept;
  Verdict admit(const Link& link);
  void seat(const Link& link, Fd fd);
  void report(const std::string& line);
  void install(int peer, Fd fd) TRIREME_REQUIRES(mutex_);
  void queue(Peer& peer, FrameKind kind, std::string_view payload) TRIREME_REQUIRES(mutex_);
  void flush(Peer& peer) TRIREME_REQUIRES(mutex_);
  void receive(int rank) TRIREME_REQUIRES(mutex_);
  void handle(int rank, const FrameReader::Frame& frame) TRIREME_REQUIRES(mutex_);
  void lose(int rank, const std::string& how) TRIREME_REQUIRES(mutex_);
  // Until `done` holds; false when the deadline passed first.
  bool wait(MutexLock& lock, Deadline deadline, const std::function<bool()>& done) TRIREME_REQUIRES(mutex_);
  // Until no rank is missing; throws when the world breaks, or Timeout that says `what` the missing ones did not do.
  // `missing` is asked with mutex_ held.
  void wait_all(Deadline deadline, std::string_view what, const std::function<bool(int rank)>& missing)
      TRIREME_EXCLUDES(mutex_);

  const int rank_, ranks_;
  const Session session_;
  const std::shared_ptr<Failure> failure_;
  const Fd wake_;
  std::unique_ptr<Listener> listener_;  // the thread's alone

  Mutex mutex_;
  CondVar changed_;
  std::vector<Peer> peers_ TRIREME_GUARDED_BY(mutex_);  // by world rank; our own is unused
  std::map<std::pair<std::uint64_t, int>, Fd> arrivals_ TRIREME_GUARDED_BY(mutex_);
  std::string contacts_ TRIREME_GUARDED_BY(mutex_);
  std::vector<std::string> refusals_ TRIREME_GUARDED_BY(mutex_);  // the first few
  std::size_t refused_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool abort_sent_ TRIREME_GUARDED_BY(mutex_) = false;

  Mutex doing_mutex_ TRIREME_ACQUIRED_AFTER(mutex_);
  CallId call_ TRIREME_GUARDED_BY(doing_mutex_){.what = CallId::kNone};
  bool in_call_ TRIREME_GUARDED_BY(doing_mutex_) = false;

  std::jthread thread_;
};

}  // namespace trireme::net

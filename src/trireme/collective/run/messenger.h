// Point-to-point messages on a channel of their own. Between two ranks they match in the order sent; a tag that
// differs is an error that names both, never a wrong match. Started messages move on without being waited for.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <span>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/collective/run/call_queue.h"

namespace trireme {

class Messenger {
 public:
  Messenger(net::Transport& transport, std::unique_ptr<net::Channel> channel, const CallQueue::Settings& settings);
  // Messages still under way are dropped.
  ~Messenger();

  // One message under way; done, or failed with an error. Guarded by the messenger's mutex, but for `finished`: once
  // that is seen true nothing changes any more.
  struct Operation {
    Operation(int to_or_from, std::uint64_t tag, bool sends, Deadline until)
        : call{.sequence = tag, .what = net::CallId::kPointToPoint},
          peer(to_or_from),
          sending(sends),
          deadline(until) {}
    net::Ticket ticket;
    const net::CallId call;
    const int peer;
    const bool sending;
    const Deadline deadline;
    std::exception_ptr error;
    std::atomic<bool> finished = false;
  };
  using Handle = std::shared_ptr<Operation>;  // shared: the messenger moves it, the caller waits for it

  Handle send(int peer, std::span<const std::byte> bytes, std::uint64_t tag);
  Handle recv(int peer, std::span<std::byte> bytes, std::uint64_t tag);
  // False if the time is over first. Rethrows the message's error.
  bool wait(const Handle& operation, Duration longest);
  bool done(const Handle& operation);

 private:
  // A caller's lock. The thread would often take it again before a caller has woken: it waits while any is on its way.
  class TRIREME_SCOPED_LOCK Turn {
   public:
    explicit Turn(Messenger& of) TRIREME_ACQUIRE(of.mutex_)
        : lock_((of.callers_.fetch_add(1, std::memory_order_relaxed), of.mutex_)) {
      of.callers_.fetch_sub(1, std::memory_order_relaxed);
    }
    ~Turn() TRIREME_RELEASE() {}
    MutexLock& lock() { return lock_; }

   private:
    MutexLock lock_;
  };

  Handle post(Handle operation, std::span<const std::byte> out, std::span<std::byte> in);
  void progress() TRIREME_REQUIRES(mutex_);
  void check_front() TRIREME_REQUIRES(mutex_);
  void fail(std::exception_ptr error) TRIREME_REQUIRES(mutex_);
  void work(std::stop_token stop);

  net::Transport& transport_;
  const CallQueue::Settings settings_;
  Mutex mutex_;
  std::atomic<int> callers_ = 0;  // that want the mutex
  StoppableCondVar changed_;
  std::unique_ptr<net::Channel> channel_ TRIREME_GUARDED_BY(mutex_);
  std::list<Handle> pending_ TRIREME_GUARDED_BY(mutex_);
  std::exception_ptr broken_ TRIREME_GUARDED_BY(mutex_);
  std::jthread thread_;  // started with the first message
};

}  // namespace trireme

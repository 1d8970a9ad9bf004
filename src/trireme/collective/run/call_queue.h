// One channel with a queue: calls run in the order given, on the caller's thread when nothing is queued and the caller
// waits anyway, else on a thread of the lane's own.
#pragma once
#include <atomic>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/collective/run/executor.h"

namespace trireme {

class CallQueue {
 public:
  struct Settings {
    Duration timeout;          // of each call
    net::Patience inline_;     // on the caller's thread
    net::Patience background;  // on the lane's, and of callers like it: they share the cores with others' work
  };
  CallQueue(net::Transport& transport, std::unique_ptr<net::Channel> channel, const Settings& settings);
  // Finishes what is queued.
  ~CallQueue();

  // Runs the call to its end. One caller at a time.
  void run(const Request& request);
  // Queues it and returns its ticket: 1, 2, 3, … One caller at a time.
  std::uint64_t start(const Request& request);
  // False if the time is over first. Rethrows the call's error. Any thread.
  bool wait(std::uint64_t ticket, Duration longest);
  bool done(std::uint64_t ticket) const { return finished_.load(std::memory_order_acquire) >= ticket; }

  // When a finished call began and ended, in seconds; zeros when it is long past. Any thread.
  struct Times {
    double begin = 0, end = 0;
  };
  Times times(std::uint64_t ticket);

  // Only while nothing is queued.
  net::Channel& channel() { return executor_.channel(); }
  std::uint64_t bytes_sent() const { return executor_.bytes_sent(); }

 private:
  void work(std::stop_token stop);

  const Settings settings_;
  // Belongs to the lane's thread while started_ > finished_, else to the caller.
  Executor executor_;
  std::uint64_t started_ = 0;  // caller only
  std::atomic<std::uint64_t> finished_{0};
  Mutex mutex_;
  StoppableCondVar changed_;
  std::deque<Request> queue_ TRIREME_GUARDED_BY(mutex_);
  std::exception_ptr error_ TRIREME_GUARDED_BY(mutex_);  // of the first call that failed; all later ones fail with it
  std::uint64_t failed_from_ TRIREME_GUARDED_BY(mutex_) = 0;
  static constexpr std::size_t kRemembered = 1024;
  std::vector<Times> times_ TRIREME_GUARDED_BY(mutex_);  // of the last kRemembered queued calls, by ticket
  std::jthread thread_;                                  // started with the first queued call
};

}  // namespace trireme

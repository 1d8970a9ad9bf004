#include "trireme/collective/run/call_queue.h"

#include <sched.h>
#include "trireme/net/memory/short_turns.h"

namespace trireme {

CallQueue::CallQueue(net::Transport& transport, std::unique_ptr<net::Channel> channel, const Settings& settings)
    : settings_(settings), executor_(transport, std::move(channel)) {}

CallQueue::~CallQueue() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void CallQueue::run(const Request& request) {
  if (done(started_)) [[likely]] {
    executor_.run(request, settings_.timeout, net::takes_short_turns() ? settings_.background : settings_.inline_);
    return;
  }
  wait(start(request), Duration::max());
}

std::uint64_t CallQueue::start(const Request& request) {
  const bool asleep = done(started_);
  {
    MutexLock lock(mutex_);
    queue_.push_back(request);
  }
  ++started_;
  if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
  changed_.notify_all();
  // Where both have only this core, the thread would come to it when the caller's time slice ends, a few milliseconds
  // of wire later: now it sends, sleeps, and the caller goes on. Where a core is spare this returns at once.
  if (asleep) sched_yield();
  return started_;
}

bool CallQueue::wait(std::uint64_t ticket, Duration longest) {
  MutexLock lock(mutex_);
  auto finished = [&] { return done(ticket); };
  if (longest == Duration::max()) {
    changed_.wait(lock, finished);  // bounded: each queued call has its own deadline
  } else if (!changed_.wait_for(lock, longest, finished)) {
    return false;
  }
  if (error_ && ticket >= failed_from_) std::rethrow_exception(error_);
  return true;
}

CallQueue::Times CallQueue::times(std::uint64_t ticket) {
  MutexLock lock(mutex_);
  auto finished = finished_.load(std::memory_order_relaxed);
  if (ticket == 0 || ticket > finished || finished - ticket >= kRemembered) return {};
  return times_[ticket % kRemembered];
}

void CallQueue::work(std::stop_token stop) {
  net::take_short_turns();
  MutexLock lock(mutex_);
  times_.resize(kRemembered);
  while (true) {
    changed_.wait(lock, stop, [&]() TRIREME_REQUIRES(mutex_) { return !queue_.empty(); });
    if (queue_.empty()) return;
    Request request = queue_.front();
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    Times times{now_seconds(), 0};
    try {
      executor_.run(request, settings_.timeout, settings_.background);
    } catch (...) {
      error = std::current_exception();
    }
    times.end = now_seconds();
    lock.lock();
    const auto ticket = finished_.load(std::memory_order_relaxed) + 1;
    if (error && !error_) {
      error_ = error;
      failed_from_ = ticket;
    }
    times_[ticket % kRemembered] = times;
    finished_.store(ticket, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace trireme

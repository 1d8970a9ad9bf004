#include "trireme/collective/run/messenger.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/net/call.h"
#include "trireme/net/memory/short_turns.h"

namespace trireme {

Messenger::Messenger(net::Transport& transport, std::unique_ptr<net::Channel> channel,
                     const CallQueue::Settings& settings)
    : transport_(transport), settings_(settings), channel_(std::move(channel)) {}

Messenger::~Messenger() {
  thread_.request_stop();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  channel_->cancel();
}

Messenger::Handle Messenger::send(int peer, std::span<const std::byte> bytes, std::uint64_t tag) {
  return post(std::make_shared<Operation>(peer, tag, true, Deadline::in(settings_.timeout)), bytes, {});
}

Messenger::Handle Messenger::recv(int peer, std::span<std::byte> bytes, std::uint64_t tag) {
  return post(std::make_shared<Operation>(peer, tag, false, Deadline::in(settings_.timeout)), {}, bytes);
}

Messenger::Handle Messenger::post(Handle operation, std::span<const std::byte> out, std::span<std::byte> in) {
  Turn turn(*this);
  if (broken_) std::rethrow_exception(broken_);
  try {
    pending_.push_back(operation);
    if (operation->sending) {
      channel_->send(operation->peer, operation->call, out, operation->ticket);
    } else {
      channel_->recv(operation->peer, operation->call, {.to = in.data(), .bytes = in.size()}, operation->ticket);
    }
    progress();
  } catch (const Error&) {
    fail(std::current_exception());
    throw;
  }
  if (!pending_.empty()) {
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
    changed_.notify_all();
  }
  return operation;
}

// Moves messages and takes those that are done off the list.
void Messenger::progress() {
  channel_->progress();
  bool finished_any = false;
  for (auto at = pending_.begin(); at != pending_.end();) {
    auto& operation = **at;
    if (operation.ticket.done) {
      operation.finished.store(finished_any = true, std::memory_order_release);
      at = pending_.erase(at);
      continue;
    }
    if (operation.deadline.passed()) {
      throw Timeout(channel_->world_rank(operation.peer),
                    fmt::format("rank {}: {} {} rank {} timed out after {:g} s", transport_.rank(),
                                net::describe(operation.call), operation.sending ? "to" : "from",
                                channel_->world_rank(operation.peer), operation.deadline.span_seconds()));
    }
    ++at;
  }
  if (finished_any) changed_.notify_all();
}

// From here on the channel cannot be trusted: everything under way fails for the same reason.
void Messenger::fail(std::exception_ptr error) {
  if (!broken_) broken_ = error;
  channel_->cancel();
  for (auto& operation : pending_) {
    operation->error = broken_;
    operation->finished.store(true, std::memory_order_release);
  }
  pending_.clear();
  changed_.notify_all();
}

bool Messenger::done(const Handle& operation) { return operation->finished.load(std::memory_order_acquire); }

bool Messenger::wait(const Handle& operation, Duration longest) {
  auto finished = [&] { return done(operation); };
  if (!finished()) {
    Turn turn(*this);
    try {
      for (int i = 0; i < settings_.inline_.spins && !finished(); ++i) progress();
    } catch (const Error&) {
      fail(std::current_exception());
    }
    if (longest == Duration::max()) {
      changed_.wait(turn.lock(), finished);  // bounded by the operation's own deadline
    } else if (!changed_.wait_for(turn.lock(), longest, finished)) {
      return false;
    }
  }
  if (operation->error) std::rethrow_exception(operation->error);
  return true;
}

// A peer may have sent what is waited for, and left, since that was looked for.
void Messenger::check_front() {
  const auto before = pending_.size();
  try {
    transport_.check_peer(channel_->world_rank(pending_.front()->peer));
  } catch (const PeerLost&) {
    progress();
    if (pending_.size() == before) throw;
  }
}

void Messenger::work(std::stop_token stop) {
  net::take_short_turns();
  MutexLock lock(mutex_);
  while (changed_.wait(lock, stop, [&]() TRIREME_REQUIRES(mutex_) { return !pending_.empty(); }) &&
         !stop.stop_requested()) {
    const auto before = pending_.size();
    try {
      progress();
      if (pending_.size() == before) {
        check_front();
        channel_->idle(std::chrono::microseconds(200));
      }
    } catch (const Error&) {
      fail(std::current_exception());
    }
    lock.unlock();
    do {
      std::this_thread::yield();
    } while (callers_.load(std::memory_order_relaxed) > 0);
    lock.lock();
  }
}

}  // namespace trireme

#include "trireme/sync/exchange/answering.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/net/memory/short_turns.h"
#include "trireme/net/watch.h"

namespace trireme::sync {
namespace {

enum What : std::uint64_t { kHeader = 1, kRequest = 2, kAnswer = 3 };

net::CallId call_of(int what) {
  return {.sequence = static_cast<std::uint64_t>(what), .what = net::CallId::kPointToPoint};
}

// As Communicator::split: rank 0 offers an id that no group of its own has.
std::unique_ptr<net::Channel> open_channel(Communicator& world, Duration timeout) {
  auto& impl = world.impl();
  std::vector<std::int64_t> id{impl.world->next_group.fetch_add(1)};
  world.broadcast(id, 0);
  const auto leader = static_cast<std::uint64_t>(impl.members[0]) + 1;
  return impl.world->transport->open((leader << 32 | static_cast<std::uint64_t>(id[0])) << 8, impl.members,
                                     Deadline::in(timeout));
}

std::span<std::byte> bytes_of(auto& plain) { return std::as_writable_bytes(std::span(&plain, 1)); }

net::Sink sink_of(std::span<std::byte> to) { return {.to = to.data(), .bytes = to.size()}; }

}  // namespace

Answering::Answering(Communicator& world, std::vector<bool> answers, Answer answer)
    : world_(world.impl().world),
      transport_(*world_->transport),
      answers_(std::move(answers)),
      answer_(std::move(answer)),
      timeout_(world.impl().settings.timeout),
      rank_(world.rank()),
      channel_(open_channel(world, timeout_)) {
  TRIREME_CHECK(answers_.size() == static_cast<std::size_t>(world.size()));
  if (!answers_[static_cast<std::size_t>(rank_)]) return;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (!answers_[static_cast<std::size_t>(rank)]) askers_.emplace_back().rank = rank;
  }
  if (askers_.empty()) return;
  running_ = true;
  thread_ = std::jthread([this](std::stop_token stop) { serve(std::move(stop)); });
}

Answering::~Answering() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  channel_->cancel();
}

// ---- Asking ----

void Answering::start(int whom, std::span<std::byte> message) {
  TRIREME_CHECK(asked_ < 0 && answers_[static_cast<std::size_t>(whom)]);
  asked_ = whom;
  message_ = message;
  if (whom == rank_) return;
  TRIREME_CHECK(!answers_[static_cast<std::size_t>(rank_)]);
  header_ = {.bytes = message.size()};
  tickets_.resize(3);
  channel_->send(whom, call_of(kHeader), bytes_of(header_), tickets_[0]);
  channel_->send(whom, call_of(kRequest), message, tickets_[1]);
  bytes_sent_ += sizeof header_ + message.size();
}

// The answer is received only now: until here the message was being read. It may take the request's place, as it is
// made after all of the request has arrived.
void Answering::finish() {
  const int whom = std::exchange(asked_, -1);
  if (whom == rank_) return answer_(rank_, message_);
  channel_->recv(whom, call_of(kAnswer), sink_of(message_), tickets_[2]);
  await(tickets_, whom, kAnswer);
}

void Answering::await(const std::vector<net::Ticket>& tickets, int whom, int what) {
  const auto call = call_of(what);
  net::Watch watch(transport_, *channel_, call, timeout_);
  auto done = [&] { return std::all_of(tickets.begin(), tickets.end(), [](auto& ticket) { return ticket.done; }); };
  try {
    for (int quiet = 0; !done();) {
      if (channel_->progress()) {
        quiet = 0;
      } else if (++quiet < 100) {
        sched_yield();
      } else {
        watch(whom);
        channel_->idle(std::chrono::milliseconds(1));
      }
    }
  } catch (const Error& error) {
    transport_.abort(error.what());
    channel_->cancel();
    throw;
  }
}

void Answering::close() {
  if (!answers_[static_cast<std::size_t>(rank_)]) return leave();
  MutexLock lock(mutex_);
  const bool ended = ended_.wait_for(lock, timeout_, [&]() TRIREME_REQUIRES(mutex_) { return !running_; });
  if (error_) std::rethrow_exception(error_);
  if (!ended) {
    throw Timeout(-1, fmt::format("rank {}: others may still ask it after {:g} s", transport_.rank(),
                                  Deadline::in(timeout_).span_seconds()));
  }
}

void Answering::leave() {
  header_ = {.leaving = 1};
  std::vector<net::Ticket> tickets(answers_.size(), net::Ticket{.done = true});
  for (std::size_t whom = 0; whom < answers_.size(); ++whom) {
    if (answers_[whom]) channel_->send(static_cast<int>(whom), call_of(kHeader), bytes_of(header_), tickets[whom]);
  }
  await(tickets, -1, kHeader);
}

// ---- Answering ----

// Invariant: from here until the thread ends, only it touches channel_ and askers_.
void Answering::serve(std::stop_token stop) {
  net::take_short_turns();
  std::exception_ptr error;
  try {
    serve_all(stop);
  } catch (const std::exception& what) {
    error = std::current_exception();
    transport_.abort(what.what());
    channel_->cancel();
  }
  MutexLock lock(mutex_);
  error_ = error;
  running_ = false;
  ended_.notify_all();
}

void Answering::serve_all(const std::stop_token& stop) {
  for (Asker& asker : askers_) expect_header(asker);
  std::size_t left = askers_.size();
  for (int quiet = 0; left > 0 && !stop.stop_requested();) {
    bool moved = channel_->progress();
    for (Asker& asker : askers_) {
      if (asker.stage == Asker::Stage::gone || !asker.ticket.done) continue;
      advance(asker);
      if (asker.stage == Asker::Stage::gone) --left;
      moved = true;
    }
    if (moved) {
      quiet = 0;
    } else {
      if (++quiet % 64 == 0) transport_.check_peer(-1);
      channel_->idle(std::chrono::milliseconds(5));  // until something comes, or to look at `stop`
    }
  }
}

void Answering::expect_header(Asker& asker) {
  asker.stage = Asker::Stage::header;
  channel_->recv(asker.rank, call_of(kHeader), sink_of(bytes_of(asker.header)), asker.ticket);
}

std::span<std::byte> Answering::room(Asker& asker, std::size_t bytes) {
  if (asker.capacity < bytes) {
    auto world = world_;
    asker.memory = {transport_.heap().allocate(bytes),
                    [world](std::byte* memory) { world->transport->heap().release(memory); }};
    asker.capacity = bytes;
  }
  return {asker.memory.get(), bytes};
}

void Answering::advance(Asker& asker) {
  using Stage = Asker::Stage;
  switch (asker.stage) {
    case Stage::header:
      if (asker.header.leaving != 0) {
        asker.stage = Stage::gone;
        return;
      }
      asker.stage = Stage::request;
      channel_->recv(asker.rank, call_of(kRequest), sink_of(room(asker, asker.header.bytes)), asker.ticket);
      return;
    case Stage::request: {
      const auto message = room(asker, asker.header.bytes);
      answer_(asker.rank, message);
      asker.stage = Stage::answer;
      channel_->send(asker.rank, call_of(kAnswer), message, asker.ticket);
      bytes_sent_ += message.size();
      return;
    }
    case Stage::answer:
      return expect_header(asker);
    case Stage::gone:
      return;
  }
}

}  // namespace trireme::sync

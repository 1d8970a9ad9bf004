// What callers of a client do: queue operations and wait for them.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/ps/client/client_impl.h"
#include "trireme/ps/wire/endpoint.h"

namespace trireme::ps {

using namespace std::chrono_literals;

Client::Impl::Impl(ClientOptions options)
    : options_(std::move(options)),
      loop_({[this](Link&, const Header& head, std::string_view) { return place(head); },
             [this](Link& link, Frame& whole) { frame(link, whole); },
             [this](Link& link, const std::string& why) { closed(link, why); }, [this] { return tick(); }}) {
  check_endpoint(options_.at, "TRIREME_PS");
  auto deadline = Deadline::in_seconds(options_.connect_timeout_s);
  Link& link = loop_.add(connect_to(options_.at, options_.key, "the coordinator", deadline), is_unix(options_.at));
  coordinator_ = link.id();
  link.send(header(Kind::hello), Packer().put(Role::worker).put<std::int32_t>(options_.rank).take());
  thread_ = std::jthread([this](std::stop_token stop) { loop_.run(stop); });
  MutexLock lock(mutex_);
  if (!changed_.wait_for(lock, deadline.left(),
                         [&]() TRIREME_REQUIRES(mutex_) { return welcomed_ || !failure_.empty(); })) {
    throw Timeout(-1, fmt::format("the coordinator at {} does not let this worker in", options_.at));
  }
  throw_if_failed();
}

Client::Impl::~Impl() {
  {
    MutexLock lock(mutex_);
    if (failure_.empty()) {
      to_coordinator_.emplace_back(header(Kind::leave), "");
      loop_.wake();
      changed_.wait_for(lock, 2s, [&]() TRIREME_REQUIRES(mutex_) { return left_ || !failure_.empty(); });
    }
  }
  thread_.request_stop();
  thread_.join();
}

void Client::Impl::throw_if_failed() const {
  if (!failure_.empty()) throw Error(failure_);
}

void Client::Impl::check_size(std::size_t count) const {
  MutexLock lock(mutex_);
  if (!declared_) throw ConfigError("declare the model to the parameter server first");
  if (count != view_.layout.count()) {
    throw ConfigError(fmt::format("{} elements were given to the parameter server, but the model has {}", count,
                                  view_.layout.count()));
  }
}

void Client::Impl::declare(const JobSpec& spec, std::span<const float> initial, Deadline deadline,
                           const ServerState& state) {
  Layout whole(spec.tensors, 1);
  for (const auto& part : state.parts) {
    if (part.size() != whole.count()) throw ConfigError("the servers' state that was given is not of this model");
  }
  if (initial.size() != whole.count()) {
    throw ConfigError(
        fmt::format("{} first values were given, but the tensors have {} elements", initial.size(), whole.count()));
  }
  const compress::Rules rules(spec.compression.codec, spec.compression.rules);
  JobSpec written = spec;
  written.compression.codec = rules.codec_text();
  written.compression.rules = rules.rules_text();
  Packer body;
  pack(body, written);
  tell(Kind::declare, body.take());
  bool given = false;
  while (true) {
    {
      MutexLock lock(mutex_);
      auto progress = [&]() TRIREME_REQUIRES(mutex_) {
        return !failure_.empty() || view_.ready || (view_.initialiser == id_ && !given);
      };
      if (!changed_.wait_for(lock, deadline.left(), progress)) {
        throw Timeout(-1, fmt::format("worker {}: the job did not begin within {:g} s: {} servers and {} workers are "
                                      "there",
                                      id_, deadline.span_seconds(), view_.servers.size(), view_.workers.size()));
      }
      throw_if_failed();
      if (view_.ready) break;
    }
    Operation first;
    first.kind = Operation::Kind::init;
    first.from = initial;
    first.states = &state;
    wait(submit(std::move(first)), deadline);
    given = true;
    tell(Kind::initialised, {});
  }
  {
    const MutexLock lock(mutex_);
    if (!rules.none()) {
      codes_ = std::make_shared<WorkerCodes>(view_.layout, rules, spec.compression, id_, view_.workers.size());
    }
    declared_ = true;
    if (!late_) return;
  }
  // Where the others are.
  Operation look;
  look.kind = Operation::Kind::look;
  std::uint64_t minimum = wait(submit(std::move(look)), deadline).minimum;
  MutexLock lock(mutex_);
  clock_ = minimum;
}

std::shared_ptr<WorkerCodes> Client::Impl::codes() const {
  const MutexLock lock(mutex_);
  return codes_;
}

// Encoded here, once and in the order of the pushes.
std::uint64_t Client::Impl::submit_push(Operation operation) {
  const auto codes = this->codes();
  operation.outcome.pushed = operation.from.size_bytes();
  if (!codes) return submit(std::move(operation));
  const MutexLock lock(encoding_);
  operation.encoded = codes->encode(operation.from);
  operation.outcome.pushed = operation.encoded.begins.back();
  operation.from = {};
  return submit(std::move(operation));
}

void Client::Impl::cut(Operation& operation, const Layout& layout, std::span<const Segment> runs) {
  operation.sparse = true;
  std::size_t begin = 0, named = 0;
  auto next = runs.begin();
  std::uint64_t done = 0;  // of the run
  for (std::size_t shard = 0; shard < layout.shards(); ++shard) {
    const Segment range = layout.shard(shard);
    auto& list = operation.segments.emplace_back();
    operation.value_begins.push_back(begin);
    while (next != runs.end() && next->offset + done < range.offset + range.count) {
      const std::uint64_t at = next->offset + done,
                          count = std::min(next->count - done, range.offset + range.count - at);
      if (count > 0) list.push_back({at - range.offset, count});
      begin += count;
      done += count;
      if (done < next->count) break;  // the next shard has the rest
      done = 0;
      ++next;
    }
    named += list.size();
  }
  operation.value_begins.push_back(begin);
  operation.outcome.pushed = operation.from.size_bytes() + named * (2 * sizeof(std::uint64_t));
}

std::uint64_t Client::Impl::submit(Operation operation) {
  MutexLock lock(mutex_);
  throw_if_failed();
  operation.id = next_id_++;
  if (operation.kind == Operation::Kind::push) {
    operation.sequence = pushes_++;
    operation.clock = clock_++;
  } else {
    operation.sequence = pushes_;
    operation.clock = operation.kind == Operation::Kind::look ? 0 : clock_;
  }
  operation.shards.assign(view_.layout.shards(), Operation::State::queued);
  operation.left = operation.shards.size();
  operation.outcome.version = UINT64_MAX;
  operations_.push_back(std::move(operation));
  loop_.wake();
  return operations_.back().id;
}

Client::Impl::Operation* Client::Impl::find(std::uint64_t id) {
  auto found = std::ranges::find(operations_, id, &Operation::id);
  return found == operations_.end() ? nullptr : &*found;
}

bool Client::Impl::done(std::uint64_t id) {
  MutexLock lock(mutex_);
  throw_if_failed();
  Operation* operation = find(id);
  return !operation || operation->left == 0;
}

std::string Client::Impl::describe_wait(const Operation& operation) const {
  std::string missing;
  for (std::uint32_t shard = 0; shard < operation.shards.size(); ++shard) {
    if (operation.shards[shard] == Operation::State::done) continue;
    const ServerInfo* server = view_.server(view_.head(shard));
    missing =
        fmt::format("{} for {}", server ? "server " + server->name : "nobody there", view_.layout.describe(shard));
    break;
  }
  bool pulls = operation.kind == Operation::Kind::pull;
  return fmt::format("worker {}: its {} at clock {} was not answered; first missing: {}{}", id_,
                     pulls ? "pull" : "push", operation.clock, missing,
                     pulls ? "; if another worker is slow, allow more staleness or more time" : "");
}

Client::Impl::Operation Client::Impl::wait(std::uint64_t id, Deadline deadline) {
  MutexLock lock(mutex_);
  Operation* operation = find(id);
  if (!operation) throw ConfigError("a ticket of the parameter server was waited for twice");
  if (!changed_.wait_for(lock, deadline.left(),
                         [&]() TRIREME_REQUIRES(mutex_) { return operation->left == 0 || !failure_.empty(); })) {
    std::string why = fmt::format("{} (waited {:g} s)", describe_wait(*operation), deadline.span_seconds());
    operation->given_up = true;
    loop_.wake();
    changed_.wait_for(lock, 10s, [&]() TRIREME_REQUIRES(mutex_) { return find(id) == nullptr; });
    throw Timeout(-1, why);
  }
  if (operation->left > 0) throw_if_failed();
  auto at = std::ranges::find(operations_, id, &Operation::id);
  Operation result = std::move(*at);
  operations_.erase(at);
  return result;
}

void Client::Impl::tell(Kind kind, std::string body) {
  MutexLock lock(mutex_);
  throw_if_failed();
  to_coordinator_.emplace_back(header(kind), std::move(body));
  loop_.wake();
}

std::string Client::Impl::call(Kind kind, std::string body, Deadline deadline) {
  MutexLock lock(mutex_);
  throw_if_failed();
  std::uint64_t id = next_id_++;
  calls_[id];
  to_coordinator_.emplace_back(header(kind, id), std::move(body));
  loop_.wake();
  // The coordinator knows who is missing, and says so when the time is over.
  changed_.wait_for(lock, deadline.left() + 500ms,
                    [&]() TRIREME_REQUIRES(mutex_) { return calls_[id].done || !failure_.empty(); });
  Call call = std::move(calls_[id]);
  calls_.erase(id);
  throw_if_failed();
  if (!call.done) throw Timeout(-1, fmt::format("the coordinator did not answer worker {} in time", id_));
  Unpacker from(call.body);
  if (!from.flag()) throw Timeout(-1, fmt::format("worker {}: {}", id_, from.text()));
  return call.body.substr(1);
}

}  // namespace trireme::ps

// What the one thread of a client does: it has sent what is queued, again where it must, and takes the answers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/ps/client/client_impl.h"

namespace trireme::ps {

using namespace std::chrono_literals;

Header Client::Impl::header(Kind kind, std::uint64_t request) const {
  Header head;
  head.kind = kind;
  head.request = request;
  head.epoch = view_.epoch;
  return head;
}

// Nothing is read into or sent from callers' memory any more once they hear of it.
void Client::Impl::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  for (auto& [server, id] : server_links_) {
    if (Link* link = loop_.find(id)) loop_.close(*link);
  }
  server_links_.clear();
  changed_.notify_all();
}

void Client::Impl::hang_up(std::uint64_t id) {
  if (Link* link = loop_.find(id)) loop_.close(*link);
  std::erase_if(server_links_, [&](auto& entry) { return entry.second == id; });
  take_back(id);
}

// A pull that is given up is forgotten. A push cannot be: servers expect it before the next one.
void Client::Impl::drop_given_up() {
  for (auto at = operations_.begin(); at != operations_.end();) {
    if (!at->given_up) {
      ++at;
      continue;
    }
    if (at->kind == Operation::Kind::push || at->kind == Operation::Kind::init) fail(describe_wait(*at));
    std::vector<std::uint64_t> links;
    for (auto& [id, request] : requests_) {
      if (request.operation == at->id) links.push_back(request.link);
    }
    for (std::uint64_t link : links) hang_up(link);
    at = operations_.erase(at);
    changed_.notify_all();
  }
}

Sink Client::Impl::place(const Header& head) {
  MutexLock lock(mutex_);
  const auto most = codes_ ? codes_->longest_answer() : view_.layout.count() * sizeof(float);
  if (head.kind != Kind::values || head.payload > most) {
    throw ProtocolError("a payload that no worker expects");
  }
  bytes_moved_ += head.payload;
  auto found = requests_.find(head.request);
  Operation* operation = found == requests_.end() ? nullptr : find(found->second.operation);
  if (!operation || operation->kind != Operation::Kind::pull || !operation->exact) {
    auto aside = std::make_shared<std::vector<std::byte>>(head.payload);
    return {{std::span(*aside)}, aside};
  }
  Sink sink;
  for (std::uint32_t shard : found->second.shards) {
    Segment range = view_.layout.shard(shard);
    sink.parts.push_back(std::as_writable_bytes(operation->into.subspan(range.offset, range.count)));
  }
  return sink;
}

void Client::Impl::frame(Link& link, Frame& frame) {
  MutexLock lock(mutex_);
  if (link.id() == coordinator_) {
    from_coordinator(frame);
  } else {
    from_server(frame);
  }
}

void Client::Impl::from_coordinator(Frame& frame) {
  Unpacker from(frame.body);
  switch (frame.header.kind) {
    case Kind::welcome:
      id_ = from.get<WorkerId>();
      lease_s_ = from.get<double>();
      late_ = !from.flag();
      welcomed_ = true;
      break;
    case Kind::view:
      set_view(unpack_view(from));
      break;
    case Kind::refuse:
      fail(fmt::format("worker {}: {}", id_ == kNobody ? options_.rank : static_cast<int>(id_), from.text()));
      break;
    case Kind::answer:
      if (auto call = calls_.find(frame.header.request); call != calls_.end()) {
        call->second = {true, std::move(frame.body)};
      }
      break;
    case Kind::leave:
      left_ = true;
      break;
    default:
      break;
  }
  changed_.notify_all();
}

void Client::Impl::set_view(View view) {
  view_ = std::move(view);
  read_version_.resize(view_.layout.shards());
  read_applied_.resize(view_.layout.shards());
  if (!view_.failure.empty()) return fail(view_.failure);
  for (auto at = server_links_.begin(); at != server_links_.end();) {
    if (view_.server(at->first)) {
      ++at;
      continue;
    }
    std::uint64_t link = at->second;
    ++at;
    hang_up(link);
  }
}

void Client::Impl::finish(Operation& operation, const std::vector<std::uint32_t>& shards) {
  for (std::uint32_t shard : shards) {
    if (operation.shards[shard] == Operation::State::done) continue;
    operation.shards[shard] = Operation::State::done;
    --operation.left;
  }
  finished_ = finished_ || operation.left == 0;
}

void Client::Impl::from_server(Frame& frame) {
  auto found = requests_.find(frame.header.request);
  if (found == requests_.end()) return;
  Request request = std::move(found->second);
  requests_.erase(found);
  Operation* operation = find(request.operation);
  if (!operation) return;
  Unpacker from(frame.body);
  if (frame.header.kind == Kind::done) {
    operation->outcome.staleness = std::max(operation->outcome.staleness, from.get<std::uint64_t>());
    finish(*operation, request.shards);
  } else if (frame.header.kind == Kind::values) {
    try {
      take_values(*operation, frame);
    } catch (const ProtocolError&) {
      // It is asked for again, on another connection.
      for (std::uint32_t shard : request.shards) operation->shards[shard] = Operation::State::queued;
      throw;
    }
    finish(*operation, request.shards);
  } else if (frame.header.kind == Kind::reject) {
    auto refusal = from.get<Refusal>();
    if (refusal == Refusal::gone) return fail(fmt::format("worker {} does not belong to the job any more", id_));
    for (std::uint32_t shard : request.shards) operation->shards[shard] = Operation::State::queued;
    if (refusal == Refusal::not_here) operation->not_before = Clock::now() + 2ms;
  } else {
    throw ProtocolError("a frame that no worker takes");
  }
}

void Client::Impl::take_values(Operation& operation, Frame& frame) {
  ValuesBody body = unpack_values(frame.body);
  if (operation.kind == Operation::Kind::pull && !operation.exact) take_differences(operation, body, frame);
  operation.outcome.held_s = std::max(operation.outcome.held_s, body.held_s);
  for (auto& part : body.parts) {
    operation.outcome.version = std::min(operation.outcome.version, part.version);
    operation.minimum = std::max(operation.minimum, part.minimum);
    if (operation.kind != Operation::Kind::pull || part.shard >= read_version_.size()) continue;
    if (operation.state >= 0) continue;  // for keeping, as is what is exact
    if (operation.exact) operation.outcome.pulled += view_.layout.shard(part.shard).count * sizeof(float);
    if (operation.exact && codes_) continue;  // for looking at: gradients are of the weights that pull() gives
    read_version_[part.shard] = part.version;
    read_applied_[part.shard] = part.applied;
  }
}

void Client::Impl::take_differences(Operation& operation, const ValuesBody& body, const Frame& frame) {
  auto rest = frame.payload.parts.empty() ? std::span<std::byte>() : frame.payload.parts[0];
  for (auto& part : body.parts) {
    if (part.shard >= view_.layout.shards() || part.bytes > rest.size()) {
      throw ProtocolError("an answer to a pull that is shorter than it says");
    }
    const auto weights = codes_->take(part.shard, part.base, part.number, rest.first(part.bytes));
    std::ranges::copy(weights, operation.into.subspan(view_.layout.shard(part.shard).offset).begin());
    rest = rest.subspan(part.bytes);
    operation.outcome.pulled += part.bytes;
  }
  if (!rest.empty()) throw ProtocolError("an answer to a pull that is longer than it says");
}

void Client::Impl::closed(Link& link, const std::string& why) {
  MutexLock lock(mutex_);
  if (link.id() == coordinator_) {
    return fail(fmt::format("worker {}: the coordinator of the parameter server is gone ({})", id_, why));
  }
  std::erase_if(server_links_, [&](auto& entry) { return entry.second == link.id(); });
  take_back(link.id());
}

void Client::Impl::take_back(std::uint64_t link) {
  for (auto at = requests_.begin(); at != requests_.end();) {
    if (at->second.link != link) {
      ++at;
      continue;
    }
    if (Operation* operation = find(at->second.operation)) {
      for (std::uint32_t shard : at->second.shards) operation->shards[shard] = Operation::State::queued;
    }
    at = requests_.erase(at);
  }
}

Duration Client::Impl::tick() {
  MutexLock lock(mutex_);
  // Once for all that came together: a push and its pull are waited for by the same thread.
  if (std::exchange(finished_, false)) changed_.notify_all();
  Link* coordinator = loop_.find(coordinator_);
  if (coordinator && welcomed_) {
    for (auto& [head, body] : to_coordinator_) coordinator->send(head, body);
    to_coordinator_.clear();
    if (Clock::now() - last_beat_ >= std::chrono::duration<double>(lease_s_ / 4)) {
      last_beat_ = Clock::now();
      coordinator->send(header(Kind::beat), {});
    }
  }
  drop_given_up();
  pump();
  // Something that could not be sent is tried again soon.
  bool waits = std::ranges::any_of(operations_, [](auto& operation) {
    return std::ranges::find(operation.shards, Operation::State::queued) != operation.shards.end();
  });
  if (waits) return 2ms;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(lease_s_ / 4));
}

void Client::Impl::pump() {
  if (!failure_.empty()) return;
  std::vector<bool> blocked(view_.layout.shards());
  for (Operation& operation : operations_) {
    if (operation.left == 0) continue;
    bool early = Clock::now() < operation.not_before;
    std::map<ServerId, std::vector<std::uint32_t>> by_server;
    for (std::uint32_t shard = 0; shard < operation.shards.size(); ++shard) {
      if (operation.shards[shard] != Operation::State::queued) continue;
      ServerId head = view_.head(shard);
      if (!blocked[shard] && !early && head != kNobody) by_server[head].push_back(shard);
      blocked[shard] = true;
    }
    for (auto& [server, shards] : by_server) {
      send(operation, server, shards);
      for (std::uint32_t shard : shards) {
        if (operation.shards[shard] == Operation::State::sent) blocked[shard] = false;
      }
    }
  }
}

}  // namespace trireme::ps

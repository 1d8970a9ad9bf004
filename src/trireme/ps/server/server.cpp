#include "trireme/ps/server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/ps/server/server_impl.h"

namespace trireme::ps {
namespace {

constexpr std::uint64_t kMostUnknown = 1 << 30;  // bytes of a payload before the model is known

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

}  // namespace

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;
const std::string& Server::name() const { return impl_->name(); }
void Server::leave(Deadline deadline) { impl_->leave(deadline); }
bool Server::wait(Deadline deadline) { return impl_->wait(deadline); }

Server::Impl::Impl(ServerOptions options)
    : options_(std::move(options)),
      session_(ps_session(options_.key)),
      loop_({[this](Link& link, const Header& head, std::string_view body) { return place(link, head, body); },
             [this](Link& link, Frame& whole) { frame(link, whole); },
             [this](Link& link, const std::string& why) { closed(link, why); }, [this] { return tick(); }}) {
  if (options_.name.empty()) options_.name = fmt::format("server-{}", ::getpid());
  check_endpoint(options_.at, "the coordinator's endpoint");
  if (!options_.checkpoint.empty()) restore();
  start();
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  MutexLock lock(mutex_);
  auto longest = std::chrono::duration<double>(options_.connect_timeout_s);
  if (!changed_.wait_for(lock, longest, [&]() TRIREME_REQUIRES(mutex_) { return welcomed_ || ended_; })) {
    throw Timeout(-1, fmt::format("the coordinator at {} does not let server {} in", options_.at, options_.name));
  }
  if (error_) std::rethrow_exception(error_);
}

Server::Impl::~Impl() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

// Listens, and calls the coordinator.
void Server::Impl::start() {
  unix_name_ = fresh_name("ps-server");
  loop_.listen(listen_at(unix_name_, options_.key), true, session_);
  net::Fd fd =
      connect_to(options_.at, options_.key, "the coordinator", Deadline::in_seconds(options_.connect_timeout_s));
  tcp_ = options_.listen;
  if (tcp_.empty() && !is_unix(options_.at)) tcp_ = local_host(fd) + ":0";
  if (!tcp_.empty()) loop_.listen(listen_at(tcp_, options_.key), false, session_);
  Link& link = loop_.add(std::move(fd), is_unix(options_.at));
  coordinator_ = link.id();
  Packer body;
  body.put(Role::server);
  pack(body, ServerInfo{kNobody, options_.name, host_identity(), process_identity(), unix_name_, tcp_});
  body.put(!options_.checkpoint.empty());
  std::vector<std::uint32_t> kept;
  for (auto& [id, held] : store_.shards()) kept.push_back(id);
  body.list(kept);
  link.send(header(Kind::hello), body.take());
}

void Server::Impl::restore() {
  std::filesystem::create_directories(options_.checkpoint);
  remove_stale_drafts(options_.checkpoint);
  Checkpoint saved = read_checkpoint(std::filesystem::path(options_.checkpoint) / (options_.name + ".ps"));
  restored_job_ = saved.job;
  for (auto& shard : saved.shards) {
    shard->mark_restored();
    store_.shards()[shard->id()].shard = shard;
  }
}

void Server::Impl::run(std::stop_token stop) {
  try {
    loop_.run(stop);
    save();
    writer_.finish();
    end();
  } catch (...) {
    end(std::current_exception());
  }
  loop_.close_all();  // everyone sees at once that it is gone
}

void Server::Impl::end(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (error && !error_) error_ = error;
  ended_ = true;
  changed_.notify_all();
}

void Server::Impl::leave(Deadline deadline) {
  wants_leave_ = true;
  loop_.wake();
  if (!wait(deadline)) {
    throw Timeout(-1, fmt::format("server {}: its shards did not move away within {:g} s; is there another server?",
                                  options_.name, deadline.span_seconds()));
  }
}

bool Server::Impl::wait(Deadline deadline) {
  MutexLock lock(mutex_);
  bool ended = changed_.wait_for(lock, deadline.left(), [&]() TRIREME_REQUIRES(mutex_) { return ended_; });
  if (ended && error_) std::rethrow_exception(error_);
  return ended;
}

Header Server::Impl::header(Kind kind, std::uint64_t request) const {
  Header head;
  head.kind = kind;
  head.request = request;
  head.epoch = store_.view().epoch;
  return head;
}

Sink Server::Impl::place(Link& link, const Header& head, std::string_view) {
  bool carries =
      head.kind == Kind::init || head.kind == Kind::push || head.kind == Kind::record || head.kind == Kind::snapshot;
  std::uint64_t model = store_.view().layout.count() * sizeof(float);
  // A snapshot has the update's state and gradients that wait, too; first values may have the state.
  const bool whole = head.kind == Kind::snapshot || head.kind == Kind::init;
  std::uint64_t most = std::max(kMostUnknown, whole ? 16 * model : model + codes_.overhead());
  if (!carries || !callers_.contains(link.id()) || head.payload > most) {
    throw ProtocolError("a payload that the parameter server did not expect");
  }
  auto buffer = store_.pool().take((head.payload + sizeof(float) - 1) / sizeof(float));
  return {{std::as_writable_bytes(buffer->span()).first(head.payload)}, buffer};
}

void Server::Impl::frame(Link& link, Frame& frame) {
  if (link.id() == coordinator_) return from_coordinator(frame);
  if (!callers_.contains(link.id())) return hello(link, frame);
  bool of_chain = frame.header.kind == Kind::snapshot || frame.header.kind == Kind::record;
  bool follows = std::ranges::any_of(early_, [&](auto& entry) { return entry.first == link.id(); });
  if (of_chain && (follows || frame.header.epoch > store_.view().epoch)) {
    // The sender knows more than we do yet.
    early_.emplace_back(link.id(), std::move(frame));
    return;
  }
  obey(link, frame);
}

void Server::Impl::obey(Link& link, Frame& frame) {
  switch (frame.header.kind) {
    case Kind::init:
      return init(link, frame);
    case Kind::push:
      return push(link, frame);
    case Kind::pull:
      return pull(link, frame);
    case Kind::snapshot:
      return snapshot(link, frame);
    case Kind::record:
      return record(link, frame);
    case Kind::stored:
      return stored(link, frame);
    default:
      throw ProtocolError("a frame that no server takes");
  }
}

void Server::Impl::hello(Link& link, Frame& frame) {
  if (frame.header.kind != Kind::hello) throw ProtocolError("a connection that does not begin with who it is");
  Unpacker from(frame.body);
  Caller caller;
  caller.role = from.get<Role>();
  caller.id = from.get<std::uint32_t>();
  if (caller.role == Role::worker_of_server) {
    auto reserve = from.get<std::uint64_t>();
    if (reserve > 0) caller.memory = std::make_shared<MappedMemory>(link.take_descriptor(), reserve);
  } else if (caller.role != Role::predecessor) {
    throw ProtocolError("a connection of a kind that no server takes");
  }
  from.end();
  callers_[link.id()] = std::move(caller);
}

void Server::Impl::from_coordinator(Frame& frame) {
  Unpacker from(frame.body);
  switch (frame.header.kind) {
    case Kind::welcome: {
      id_ = from.get<ServerId>();
      lease_s_ = from.get<double>();
      MutexLock lock(mutex_);
      welcomed_ = true;
      changed_.notify_all();
      return;
    }
    case Kind::view:
      return set_view(unpack_view(from));
    case Kind::refuse:
      throw Error(fmt::format("server {}: {}", options_.name, from.text()));
    case Kind::leave:
      thread_.request_stop();
      return;
    default:
      return;
  }
}

void Server::Impl::set_view(View view) {
  if (view.layout.shards() > 0) check_restored(view);
  store_.set_view(std::move(view), id_, options_.updates);
  codes_.set_view(store_.view(), id_);
  for (auto& [id, held] : store_.shards()) {
    if (auto change = store_.apply_due(held)) forward(held, *change);
  }
  for (auto at = early_.begin(); at != early_.end() && at->second.header.epoch <= store_.view().epoch;) {
    Link* link = loop_.find(at->first);
    Frame frame = std::move(at->second);
    at = early_.erase(at);
    try {
      if (link) obey(*link, frame);
    } catch (const ProtocolError& error) {
      loop_.close(*link);
      closed(*link, error.what());
      break;  // its other frames are gone with it
    }
  }
  next_call_ = {};
  supply_successors();
  for (auto& [id, held] : store_.shards()) tell_stored(held);
  note_asked();
}

// What a checkpoint brought must fit the job: another model is refused, another job's workers are forgotten.
void Server::Impl::check_restored(const View& view) {
  if (checked_restored_) return;
  checked_restored_ = true;
  for (auto& [id, held] : store_.shards()) {
    if (!held.shard || !held.shard->restored()) continue;
    if (id >= view.layout.shards() || held.shard->count() != view.layout.shard(id).count) {
      throw DataError(fmt::format("server {}: the checkpoint in {} is of another model; use another folder",
                                  options_.name, options_.checkpoint));
    }
    if (view.job != restored_job_) held.shard->forget_workers();
  }
}

void Server::Impl::closed(Link& link, const std::string&) {
  if (link.id() == coordinator_) {
    // The job is over.
    thread_.request_stop();
    return;
  }
  callers_.erase(link.id());
  pulls_to_come_.erase(link.id());
  lose_link(link.id());
  std::erase_if(early_, [&](auto& entry) { return entry.first == link.id(); });
  auto of_link = [&](auto& pending) { return pending.link == link.id(); };
  pushes_.remove_if(of_link);
  pulls_.remove_if(of_link);
}

Duration Server::Impl::tick() {
  if (something_asked_ && more_comes()) return std::chrono::milliseconds(1);
  if (something_asked_) answer_all();
  double beat = lease_s_ / 4;
  if (Link* link = loop_.find(coordinator_); link && id_ != kNobody) {
    if (seconds_since(last_beat_) >= beat) {
      last_beat_ = Clock::now();
      link->send(header(Kind::beat), {});
    }
    if (wants_leave_ && !leave_said_) {
      leave_said_ = true;
      link->send(header(Kind::leave), {});
    }
  }
  if (Clock::now() >= next_call_) supply_successors();
  if (!options_.checkpoint.empty() && seconds_since(last_save_) >= options_.checkpoint_every_s) save();
  return std::chrono::milliseconds(std::max(5, static_cast<int>(std::min(beat, 0.05) * 1000)));
}

void Server::Impl::save() {
  last_save_ = Clock::now();
  if (options_.checkpoint.empty()) return;
  std::vector<std::shared_ptr<Shard>> shards;
  for (auto& [id, held] : store_.shards()) {
    if (held.shard) shards.push_back(held.shard);
  }
  writer_.begin(std::filesystem::path(options_.checkpoint) / (options_.name + ".ps"),
                checkpoint_bytes(store_.view().job, store_.view().layout, shards));
}

}  // namespace trireme::ps

#include "trireme/ps/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/net/socket.h"
#include "trireme/ps/coordinator/coordinator_impl.h"

namespace trireme::ps {
namespace {

Header header(Kind kind, std::uint64_t epoch, std::uint64_t request = 0) {
  Header head;
  head.kind = kind;
  head.epoch = epoch;
  head.request = request;
  return head;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Coordinator::~Coordinator() = default;
const std::string& Coordinator::endpoint() const { return impl_->endpoint(); }
View Coordinator::view() const { return impl_->view(); }
bool Coordinator::whole() const { return impl_->whole(); }

Coordinator::Impl::Impl(CoordinatorOptions options)
    : options_(std::move(options)),
      session_(ps_session(options_.key)),
      loop_({[](Link&, const Header&, std::string_view) -> Sink {
               throw ProtocolError("a coordinator takes no payload");
             },
             [this](Link& link, Frame& whole) { frame(link, whole); },
             [this](Link& link, const std::string& why) { closed(link, why); }, [this] { return tick(); }}) {
  if (options_.at.empty()) options_.at = fresh_name("ps");
  net::Fd listener = listen_at(options_.at, options_.key);
  loop_.listen(std::move(listener), is_unix(options_.at), session_);
  std::array<std::uint8_t, 8> random;
  net::fill_random(random);
  std::memcpy(&view_.job, random.data(), sizeof view_.job);
  published_ = view_;
  thread_ = std::jthread([this](std::stop_token stop) { loop_.run(stop); });
}

Coordinator::Impl::~Impl() {
  thread_.request_stop();
  thread_.join();
}

View Coordinator::Impl::view() const {
  MutexLock lock(mutex_);
  return published_;
}

std::vector<WorkerId> Coordinator::Impl::summing_workers() const {
  std::vector<WorkerId> ids;
  for (auto& [id, worker] : workers_) {
    if (worker.sums) ids.push_back(id);
  }
  return ids;
}

void Coordinator::Impl::frame(Link& link, Frame& frame) {
  Unpacker from(frame.body);
  auto found = members_.find(link.id());
  if (found == members_.end()) {
    const bool waits = std::ranges::find(late_workers_, link.id()) != late_workers_.end();
    if (waits && frame.header.kind == Kind::beat) return;
    if (waits || frame.header.kind != Kind::hello)
      throw ProtocolError("a connection that does not begin with who it is");
    return hello(link, from);
  }
  Member& member = found->second;
  member.heard = Clock::now();
  const std::uint64_t request = frame.header.request;
  bool of_worker = member.role == Role::worker;
  switch (frame.header.kind) {
    case Kind::beat:
      link.send(header(Kind::beat, view_.epoch), {});
      return;
    case Kind::synced: {
      auto shard = from.get<std::uint32_t>();
      auto server = from.get<ServerId>();
      placement_.synced(shard, server);
      return settle(false);
    }
    case Kind::leave:
      return leave(link, member);
    case Kind::stop:
      if (view_.stop.empty()) {
        view_.stop = from.text();
        settle(true);
      }
      return;
    default:
      break;
  }
  if (!of_worker) throw ProtocolError("a frame that no server sends to the coordinator");
  switch (frame.header.kind) {
    case Kind::declare:
      return declare(link, member.id, from);
    case Kind::initialised:
      return initialised(member.id);
    case Kind::sum:
      workers_.at(member.id).sums = true;
      return deliver(meeting_.sum(link.id(), request, member.id, from, summing_workers()));
    case Kind::ticket:
      return deliver({meeting_.ticket(link.id(), request, from)});
    default:
      throw ProtocolError("a frame that the coordinator does not take");
  }
}

void Coordinator::Impl::deliver(std::vector<Meeting::Answer> answers) {
  for (auto& answer : answers) {
    if (Link* link = loop_.find(answer.link))
      link->send(header(Kind::answer, view_.epoch, answer.request), answer.body);
  }
}

void Coordinator::Impl::refuse(Link& link, const std::string& why) {
  link.send(header(Kind::refuse, view_.epoch), Packer().text(why).take());
  loop_.close(link);
}

void Coordinator::Impl::hello(Link& link, Unpacker& from) {
  auto role = from.get<Role>();
  if (role == Role::worker) return add_worker(link, from);
  if (role == Role::server) return add_server(link, from);
  throw ProtocolError("a connection of a kind that the coordinator does not take");
}

// A worker that joins at the start may choose its id, the order in which gradients are summed; later ones get new ids,
// since what an earlier one of the same id pushed is remembered.
void Coordinator::Impl::add_worker(Link& link, Unpacker& from) {
  auto wish = from.get<std::int32_t>();
  from.end();
  if (wish == kLateWorker && !view_.ready) {
    late_workers_.push_back(link.id());
  } else {
    seat(link, wish);
  }
}

void Coordinator::Impl::seat(Link& link, std::int32_t wish) {
  WorkerId id = kNobody;
  bool early = !view_.ready;
  if (early && wish >= 0) {
    id = static_cast<WorkerId>(wish);
    if (wish >= options_.workers) {
      return refuse(link, fmt::format("worker {} joins a job of {} workers", wish, options_.workers));
    }
    if (workers_.contains(id)) return refuse(link, fmt::format("there is a worker {} already", wish));
  } else {
    next_worker_ = std::max(next_worker_, static_cast<WorkerId>(early ? 0 : options_.workers));
    while (workers_.contains(next_worker_)) ++next_worker_;
    id = next_worker_++;
  }
  members_[link.id()] = {Role::worker, id};
  workers_[id] = {link.id(), early, false, early};
  link.send(header(Kind::welcome, view_.epoch), Packer().put(id).put(options_.lease_s).put(early).take());
  settle(true);
}

void Coordinator::Impl::add_server(Link& link, Unpacker& from) {
  ServerState server;
  server.info = unpack_server(from);
  server.keeps_files = from.flag();
  server.kept = from.list<std::uint32_t>();
  from.end();
  for (auto& [id, other] : servers_) {
    if (other.info.name == server.info.name && server.keeps_files) {
      return refuse(link, fmt::format("there is a server called {} already; give each its own name", other.info.name));
    }
  }
  server.info.id = next_server_++;
  server.link = link.id();
  members_[link.id()] = {Role::server, server.info.id};
  link.send(header(Kind::welcome, view_.epoch), Packer().put(server.info.id).put(options_.lease_s).take());
  servers_[server.info.id] = std::move(server);
  settle(true);
}

void Coordinator::Impl::declare(Link& link, WorkerId worker, Unpacker& from) {
  JobSpec spec = unpack_job(from);
  from.end();
  if (!job_) {
    job_ = spec;
  } else if (auto differs = difference(job_->tensors, spec.tensors); !differs.empty()) {
    return refuse(link, fmt::format("worker {} declares another model than the first worker: {}", worker, differs));
  } else if (job_->update != spec.update || job_->consistency != spec.consistency) {
    return refuse(link, fmt::format("worker {} declares update {} under {}, but the first worker {} under {}", worker,
                                    spec.update.name, to_string(spec.consistency), job_->update.name,
                                    to_string(job_->consistency)));
  } else if (to_string(job_->compression) != to_string(spec.compression)) {
    return refuse(link, fmt::format("worker {} declares compression {}, but the first worker {}", worker,
                                    to_string(spec.compression), to_string(job_->compression)));
  }
  workers_.at(worker).declared = true;
  settle(true);
}

void Coordinator::Impl::initialised(WorkerId worker) {
  if (worker != view_.initialiser || view_.ready) return;
  view_.initialiser = kNobody;
  initialised_ = true;
  settle(true);
}

void Coordinator::Impl::leave(Link& link, const Member& member) {
  if (member.role == Role::server) {
    servers_.at(member.id).leaving = true;
    // Its files are out of date from now on.
    servers_.at(member.id).kept.clear();
    return settle(true);
  }
  link.send(header(Kind::leave, view_.epoch), {});
  Member gone = member;
  members_.erase(link.id());
  remove(gone, {});
}

void Coordinator::Impl::closed(Link& link, const std::string& why) {
  auto found = members_.find(link.id());
  if (found == members_.end()) return;
  Member gone = found->second;
  members_.erase(found);
  remove(gone, why);
}

void Coordinator::Impl::remove(const Member& member, const std::string& why) {
  if (member.role == Role::worker) {
    workers_.erase(member.id);
    meeting_.forget(member.id);
  } else if (auto found = servers_.find(member.id); found != servers_.end()) {
    auto& server = found->second;
    if (placement_.carries(member.id)) {
      last_death_ = fmt::format("server {} is gone ({})", server.info.name, why);
      files_may_return_ = files_may_return_ || server.keeps_files;
    }
    servers_.erase(found);
  }
  settle(true);
}

// Once enough servers are there and a worker has said what the model is.
void Coordinator::Impl::begin_job() {
  if (!job_ || view_.layout.shards() > 0 || static_cast<int>(servers_.size()) < options_.servers) return;
  view_.update = job_->update;
  view_.consistency = job_->consistency;
  view_.compression = job_->compression;
  view_.layout = Layout(job_->tensors, static_cast<std::size_t>(options_.shards_per_server) * servers_.size());
  std::vector<Placement::Candidate> candidates;
  for (auto& [id, server] : servers_) candidates.push_back({id, server.leaving, server.kept});
  placement_.begin(view_.layout.shards(), candidates, static_cast<std::size_t>(options_.replicas));
  for (auto& [id, server] : servers_) server.kept.clear();
}

// Shards that nobody has are an error, unless a server with a checkpoint may come back.
void Coordinator::Impl::judge_losses() {
  auto lost = placement_.lost();
  if (lost.empty()) {
    restart_.reset();
    return;
  }
  if (files_may_return_ && !restart_) restart_ = Deadline::in_seconds(options_.restart_s);
  if (!view_.failure.empty() || (files_may_return_ && !restart_->passed())) return;
  view_.failure = fmt::format(
      "{} and with it the only copy of {} of {} shards: {}{}; run with --replicas 2, or let "
      "servers write checkpoints",
      last_death_, lost.size(), view_.layout.shards(), view_.layout.describe(lost[0]),
      lost.size() > 1 ? " and more" : "");
}

void Coordinator::Impl::settle(bool changed) {
  begin_job();
  std::vector<Placement::Candidate> candidates;
  for (auto& [id, server] : servers_) candidates.push_back({id, server.leaving, server.kept});
  changed = placement_.settle(candidates, static_cast<std::size_t>(options_.replicas)) || changed;
  for (auto& [id, server] : servers_) server.kept.clear();
  std::string failure = view_.failure;
  judge_losses();
  changed = changed || failure != view_.failure;
  // The worker of the lowest id that has declared gives the first values.
  if (view_.layout.shards() > 0 && !initialised_) {
    auto first = std::ranges::find_if(workers_, [](auto& entry) { return entry.second.declared; });
    view_.initialiser = first == workers_.end() ? kNobody : first->first;
  }
  auto declared = std::ranges::count_if(workers_, [](auto& entry) { return entry.second.declared; });
  if (initialised_ && !view_.ready && declared >= options_.workers) {
    view_.ready = true;
    changed = true;
  }
  whole_ = view_.ready && placement_.whole(static_cast<std::size_t>(options_.replicas));
  if (changed) publish();
  if (view_.ready) {
    for (std::uint64_t late : std::exchange(late_workers_, {})) {
      if (Link* link = loop_.find(late)) seat(*link, kLateWorker);
    }
  }
  deliver(meeting_.review(summing_workers()));
  for (auto& [id, server] : servers_) {
    Link* link = loop_.find(server.link);
    if (server.leaving && link && !placement_.carries(id)) link->send(header(Kind::leave, view_.epoch), {});
  }
}

void Coordinator::Impl::publish() {
  ++view_.epoch;
  view_.chains = placement_.chains();
  view_.servers.clear();
  view_.workers.clear();
  for (auto& [id, server] : servers_) view_.servers.push_back(server.info);
  for (auto& [id, worker] : workers_) view_.workers.push_back({id, worker.initial});
  Packer body;
  pack(body, view_);
  std::string bytes = body.take();
  // Servers first, so that they know of it when workers come.
  for (Role role : {Role::server, Role::worker}) {
    for (auto& [id, member] : members_) {
      Link* link = loop_.find(id);
      if (member.role == role && link) link->send(header(Kind::view, view_.epoch), bytes);
    }
  }
  MutexLock lock(mutex_);
  published_ = view_;
}

Duration Coordinator::Impl::tick() {
  auto limit = std::chrono::duration<double>(options_.lease_s);
  // Who stood still itself cannot tell who was silent meanwhile.
  const auto now = Clock::now(), expected = std::exchange(last_tick_, now) + std::chrono::milliseconds(500);
  if (now > expected) {
    for (auto& [id, member] : members_) member.heard += now - expected;
  }
  std::vector<std::uint64_t> silent;
  for (auto& [id, member] : members_) {
    if (Clock::now() - member.heard > limit) silent.push_back(id);
  }
  for (std::uint64_t id : silent) {
    Member member = members_.at(id);
    members_.erase(id);
    std::string why = fmt::format("silent for more than {:g} s", options_.lease_s);
    if (Link* link = loop_.find(id)) refuse(*link, fmt::format("the coordinator gave it up: {}", why));
    remove(member, why);
  }
  if (restart_ && restart_->passed() && view_.failure.empty()) settle(false);
  deliver(meeting_.review(summing_workers()));
  return std::chrono::milliseconds(20);
}

}  // namespace trireme::ps

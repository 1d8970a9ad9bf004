// What workers ask of a server.
#include "trireme/base/error.h"
#include "trireme/ps/server/server_impl.h"

namespace trireme::ps {

void Server::Impl::reject(std::uint64_t link, std::uint64_t request, Refusal refusal) {
  Packer body;
  body.put(refusal);
  if (Link* to = loop_.find(link)) to->send(header(Kind::reject, request), body.take());
}

std::span<const float> Server::Impl::floats_of(const Frame& frame) {
  if (frame.header.payload % sizeof(float) != 0) throw ProtocolError("a payload that is not of whole floats");
  auto buffer = std::static_pointer_cast<Floats>(frame.payload.keep);
  return buffer ? buffer->span() : std::span<float>();
}

void Server::Impl::init(Link& link, Frame& frame) {
  const InitBody body = unpack_init(frame.body);
  std::span<const float> values = floats_of(frame);
  const Layout& layout = store_.view().layout;
  for (std::uint32_t id : body.shards) {
    auto found = store_.shards().find(id);
    if (found == store_.shards().end() || !found->second.head) {
      return reject(link.id(), frame.header.request, Refusal::not_here);
    }
  }
  PendingAnswer answer{link.id(), frame.header.request, kNobody, 0, 0, {}};
  for (std::uint32_t id : body.shards) {
    const auto count = layout.shard(id).count, of_states = body.states * count;
    if (count + of_states > values.size()) throw ProtocolError("first values that are fewer than they must be");
    store_.init(id, values.first(count), values.subspan(count, of_states), body.states > 0 ? body.version : 0);
    values = values.subspan(count + of_states);
    answer.parts.push_back({id, store_.shards()[id].shard->record(), false});
  }
  pushes_.push_back(std::move(answer));
  supply_successors();
  note_asked();
}

// What a push has for one shard, in memory that stays.
struct Server::Impl::Arrived {
  std::span<const float> values;
  std::shared_ptr<const void> keep;
  std::span<const std::byte> encoded;  // what the values were decoded from; of the frame's payload
};

// All parts of a push, checked and decoded before anything of it is taken.
std::vector<Server::Impl::Arrived> Server::Impl::arrived(const PushBody& body, const Caller& caller,
                                                         const Frame& frame) {
  if (body.encoded && body.direct) throw ProtocolError("an encoded push that is not in its frame");
  if (!body.encoded) (void)floats_of(frame);
  auto rest = frame.payload.parts.empty() ? std::span<std::byte>() : frame.payload.parts[0];
  std::vector<Arrived> parts;
  for (auto& part : body.parts) {
    const auto count = values_of(part.segments, part.sparse, store_.head_of(part.shard)->shard->count());
    if (body.direct) {
      if (!caller.memory) throw ProtocolError("a push from memory that was not given to the server");
      parts.push_back({{caller.memory->at(part.memory, count), count}, caller.memory, {}});
      continue;
    }
    const auto bytes = body.encoded ? part.bytes : count * sizeof(float);
    if (bytes > rest.size()) throw ProtocolError("a push with fewer values than it must have");
    if (body.encoded) {
      if (part.sparse) throw ProtocolError("an encoded push of a part of a shard");
      auto decoded = store_.pool().take(count);
      codes_.decode(part.shard, rest.first(bytes), decoded->span());
      parts.push_back({decoded->span(), decoded, rest.first(bytes)});
    } else {
      parts.push_back({{reinterpret_cast<const float*>(rest.data()), count}, frame.payload.keep, {}});
    }
    rest = rest.subspan(bytes);
  }
  if (!rest.empty()) throw ProtocolError("a push with more values than it must have");
  return parts;
}

void Server::Impl::push(Link& link, Frame& frame) {
  PushBody body = unpack_push(frame.body);
  Caller& caller = callers_.at(link.id());
  if (auto refusal = store_.refusal(body)) {
    // Who has a newer view than this server is asked to wait for it.
    if (*refusal == Refusal::gone && frame.header.epoch > store_.view().epoch) refusal = Refusal::not_here;
    return reject(link.id(), frame.header.request, *refusal);
  }
  const auto parts = arrived(body, caller, frame);
  PendingAnswer answer{link.id(), frame.header.request, body.worker, body.clock, 0, {}};
  for (std::size_t i = 0; i < body.parts.size(); ++i) {
    auto& part = body.parts[i];
    Held& held = *store_.head_of(part.shard);
    answer.staleness = std::max(answer.staleness, store_.staleness(body, part));
    if (auto change = store_.take(body, part, parts[i].values, parts[i].keep, body.direct)) {
      if (body.encoded) change->encode_as(parts[i].encoded, frame.payload.keep);
      forward(held, *change);
    }
    answer.parts.push_back({part.shard, held.shard->worker(body.worker).record, body.direct && body.patient});
  }
  pushes_.push_back(std::move(answer));
  if (body.patient && !store_.view().consistency.async) pulls_to_come_.insert(link.id());
  note_asked();
}

void Server::Impl::note_asked() {
  if (!something_asked_) asked_since_ = Clock::now();
  something_asked_ = true;
}

// Whether it pays to wait a moment: a pull that is on its way is served in the same pass as the others.
bool Server::Impl::more_comes() const {
  return !pulls_to_come_.empty() && Clock::now() - asked_since_ < std::chrono::milliseconds(1);
}

void Server::Impl::answer_all() {
  something_asked_ = false;
  pulls_to_come_.clear();
  auto ready = take_ready_pulls();
  settle_for(ready);
  answer_pushes();
  // The nearest last: a worker that has its weights computes on the core that other answers need.
  const auto near = [&](const PendingPull& pull) {
    const Link* link = loop_.find(pull.link);
    return link == nullptr ? Other::elsewhere : link->other();
  };
  ready.sort([&](const PendingPull& one, const PendingPull& other) { return near(one) < near(other); });
  for (auto& pull : ready) give_values(pull);
}

void Server::Impl::answer_pushes() {
  for (auto at = pushes_.begin(); at != pushes_.end();) {
    bool kept = true, here = true;
    for (auto& part : at->parts) {
      Held* held = store_.head_of(part.shard);
      here = here && held;
      kept = kept && held && held->stored() >= part.record;
      kept = kept && !(part.until_used && held->shard->waits(at->clock, at->worker));
    }
    if (!here) {
      reject(at->link, at->request, Refusal::not_here);
    } else if (kept) {
      Packer body;
      body.put(at->staleness);
      // With the weights, where they follow: whoever waits for both wakes once.
      if (Link* link = loop_.find(at->link)) link->queue(header(Kind::done, at->request), body.take());
    } else {
      ++at;
      continue;
    }
    at = pushes_.erase(at);
  }
}

void Server::Impl::pull(Link& link, Frame& frame) {
  PullBody body = unpack_pull(frame.body);
  auto& memory = callers_.at(link.id()).memory;
  const Layout& layout = store_.view().layout;
  // Checked now, while it is this caller's fault: its memory never shrinks.
  for (auto& part : body.parts) {
    if (body.what == PullBody::What::update && part.has >= static_cast<std::uint64_t>(store_.update().states)) {
      throw ProtocolError("a pull of a state that the update does not have");
    }
    if (body.what != PullBody::What::direct || part.shard >= layout.shards()) continue;
    if (!memory) throw ProtocolError("a pull into memory that was not given to the server");
    memory->at(part.memory, layout.shard(part.shard).count);
  }
  pulls_.push_back({link.id(), frame.header.request, std::move(body), Clock::now(), {}});
  pulls_to_come_.erase(link.id());
  note_asked();
}

std::list<Server::Impl::PendingPull> Server::Impl::take_ready_pulls() {
  std::list<PendingPull> ready;
  for (auto at = pulls_.begin(); at != pulls_.end();) {
    auto next = std::next(at);
    auto verdict = Store::Answer::now;
    for (auto& part : at->body.parts) {
      auto each = store_.answer(at->body, part.shard);
      if (each == Store::Answer::not_here || verdict == Store::Answer::now) verdict = each;
      if (verdict == Store::Answer::not_here) break;
    }
    if (verdict == Store::Answer::not_here) {
      reject(at->link, at->request, Refusal::not_here);
      pulls_.erase(at);
    } else if (verdict == Store::Answer::now) {
      at->given.assign(at->body.parts.size(), false);
      ready.splice(ready.end(), pulls_, at);
    }
    at = next;
  }
  return ready;
}

// The updates of each shard, and in the same pass the new weights into the memory of those who want them.
void Server::Impl::settle_for(std::list<PendingPull>& pulls) {
  for (auto& [id, held] : store_.shards()) {
    if (!held.unsettled) continue;
    std::vector<float*> copies;
    std::vector<std::pair<PendingPull*, std::size_t>> served;
    for (auto& pull : pulls) {
      auto caller = callers_.find(pull.link);
      if (pull.body.what != PullBody::What::direct || caller == callers_.end()) continue;
      for (std::size_t i = 0; i < pull.body.parts.size(); ++i) {
        if (pull.body.parts[i].shard != id) continue;
        copies.push_back(caller->second.memory->at(pull.body.parts[i].memory, held.shard->count()));
        served.emplace_back(&pull, i);
      }
    }
    if (!store_.settle(held, copies)) continue;
    for (auto& [pull, part] : served) pull->given[part] = true;
  }
}

void Server::Impl::give_values(const PendingPull& pull) {
  Link* link = loop_.find(pull.link);
  if (!link) return;
  auto& memory = callers_.at(pull.link).memory;
  ValuesBody body;
  body.held_s = std::chrono::duration<double>(Clock::now() - pull.since).count();
  Payload payload;
  auto keep = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (std::size_t i = 0; i < pull.body.parts.size(); ++i) {
    auto& part = pull.body.parts[i];
    const std::shared_ptr<Shard>& shard = store_.head_of(part.shard)->shard;
    auto known = shard->workers().find(pull.body.worker);
    body.parts.push_back({part.shard, shard->version(), known == shard->workers().end() ? 0 : known->second.applied,
                          store_.minimum(*shard), 0, 0, 0});
    if (pull.body.what == PullBody::What::direct) {
      if (!pull.given[i]) shard->copy_to(memory->at(part.memory, shard->count()));
    } else if (pull.body.what == PullBody::What::difference) {
      auto answer = codes_.answer(pull.body.worker, *shard, part.has);
      body.parts.back().base = answer.base;
      body.parts.back().number = answer.number;
      body.parts.back().bytes = answer.bytes.size();
      payload.parts.push_back(answer.bytes);
      keep->push_back(std::move(answer.keep));
    } else if (pull.body.what == PullBody::What::payload) {
      payload.parts.push_back(std::as_bytes(shard->weights()));
      keep->push_back(shard);
    } else if (pull.body.what == PullBody::What::update) {
      payload.parts.push_back(std::as_bytes(shard->states()[part.has].span()));
      keep->push_back(shard);
    }
  }
  payload.keep = keep;
  link->send(header(Kind::values, pull.request), pack(body), std::move(payload));
}

}  // namespace trireme::ps

// Chain replication (van Renesse & Schneider, "Chain replication for supporting high throughput and availability",
// 2004): the head orders the changes of a shard and sends them along; an answer goes out once the tail has them.
// Whoever gets a new successor gives it the shard whole, and the records after it on the same connection. Each side
// believes only the connection on which the whole shard came.
#include "trireme/base/error.h"
#include "trireme/ps/server/server_impl.h"

namespace trireme::ps {

using namespace std::chrono_literals;

void Server::Impl::forward(Held& held, const Change& change) {
  if (held.successor_link == 0) return;  // it gets the shard whole, with this in it
  Link* link = loop_.find(held.successor_link);
  if (!link) return;
  Payload payload;
  if (!change.values.empty()) payload = {{change.values}, change.keep};
  link->send(header(Kind::record), pack(change.body), std::move(payload));
}

Link* Server::Impl::link_to(ServerId server) {
  if (auto known = successor_links_.find(server); known != successor_links_.end()) {
    if (Link* link = loop_.find(known->second)) return link;
  }
  const ServerInfo* info = store_.view().server(server);
  if (!info) return nullptr;
  try {
    std::string endpoint = endpoint_of(*info, Reach::automatic);
    if (endpoint.empty()) return nullptr;
    Link& link = loop_.add(connect_to(endpoint, options_.key, info->name, patience_for(endpoint)), is_unix(endpoint));
    Packer body;
    body.put(Role::predecessor).put(id_);
    link.send(header(Kind::hello), body.take());
    callers_[link.id()] = {Role::predecessor, server, nullptr};
    successor_links_[server] = link.id();
    return &link;
  } catch (const Error&) {
    return nullptr;  // it is tried again, until the coordinator finds that it is gone
  }
}

void Server::Impl::supply_successors() {
  next_call_ = Clock::now() + 20ms;
  for (auto& [id, held] : store_.shards()) {
    if (!held.shard || held.successor == kNobody || held.successor_link != 0) continue;
    if (Link* link = link_to(held.successor)) supply(held, *link);
  }
}

void Server::Impl::supply(Held& held, Link& link) {
  store_.settle(held, {});  // what is due is in the copy, not after it
  Packer body;
  std::vector<std::span<const float>> floats;
  held.shard->pack(body, floats);
  std::size_t count = 0;
  for (auto part : floats) count += part.size();
  auto frozen = std::make_shared<Floats>(count);
  auto* to = frozen->data();
  for (auto part : floats) to = std::ranges::copy(part, to).out;
  held.successor_link = link.id();
  link.send(header(Kind::snapshot), body.take(), {{std::as_bytes(frozen->span())}, frozen});
}

void Server::Impl::snapshot(Link& link, Frame& frame) {
  const Caller& caller = callers_.at(link.id());
  Unpacker from(frame.body);
  auto fresh = Shard::unpack(from, floats_of(frame));
  from.end();
  const View& view = store_.view();
  auto found = store_.shards().find(fresh->id());
  if (found == store_.shards().end()) return;
  Held& held = found->second;
  if (held.predecessor != caller.id || held.head) return;  // from who was our predecessor once
  if (fresh->id() < view.layout.shards() && fresh->count() != view.layout.shard(fresh->id()).count) {
    throw ProtocolError("a shard of another size than it must have");
  }
  held.shard = std::move(fresh);
  held.source = link.id();
  held.successor_link = 0;
  held.confirmed = false;
  held.stored_below = 0;
  supply_successors();
  tell_stored(held);
}

void Server::Impl::record(Link& link, Frame& frame) {
  RecordBody body = unpack_record(frame.body);
  auto found = store_.shards().find(body.shard);
  if (found == store_.shards().end() || !found->second.shard) return;
  Held& held = found->second;
  if (held.source != link.id() || body.record != held.shard->record() + 1) return;
  std::shared_ptr<const void> keep = frame.payload.keep;
  const auto bytes = frame.payload.parts.empty() ? std::span<const std::byte>() : frame.payload.parts[0];
  std::span<const float> values;
  if (body.has_push) {
    const auto count = values_of(body.push.segments, body.push.sparse, held.shard->count());
    if (body.encoded) {
      if (body.push.sparse) throw ProtocolError("an encoded record of a part of a shard");
      auto decoded = store_.pool().take(count);
      codes_.decode(body.shard, bytes, decoded->span());
      values = decoded->span();
      keep = decoded;
    } else {
      values = floats_of(frame);
    }
    if (values.size() != count) throw ProtocolError("a record with more or fewer values than it must have");
  }
  store_.follow(held, body, values, keep);
  if (held.successor != kNobody) forward(held, {std::move(body), bytes, frame.payload.keep});
  tell_stored(held);
}

// Upwards: how far we and everyone after us have the shard.
void Server::Impl::tell_stored(Held& held) {
  if (held.head || !held.shard || held.source == 0) return;
  if (held.successor != kNobody && !held.confirmed) return;
  Packer body;
  body.put(held.shard->id()).put(held.stored());
  if (Link* up = loop_.find(held.source)) up->send(header(Kind::stored), body.take());
}

void Server::Impl::stored(Link& link, Frame& frame) {
  Unpacker from(frame.body);
  auto found = store_.shards().find(from.get<std::uint32_t>());
  auto record = from.get<std::uint64_t>();
  if (found == store_.shards().end() || found->second.successor_link != link.id()) return;
  Held& held = found->second;
  held.stored_below = std::max(held.stored_below, record);
  if (!held.confirmed) {
    held.confirmed = true;
    Packer body;
    body.put(found->first).put(held.successor);
    if (Link* coordinator = loop_.find(coordinator_)) coordinator->send(header(Kind::synced), body.take());
  }
  tell_stored(held);
  note_asked();
}

void Server::Impl::lose_link(std::uint64_t link) {
  std::erase_if(successor_links_, [&](auto& entry) { return entry.second == link; });
  for (auto& [id, held] : store_.shards()) {
    if (held.successor_link == link) {
      held.successor_link = 0;
      held.confirmed = false;
      held.stored_below = 0;
    }
    if (held.source == link) held.source = 0;
  }
}

}  // namespace trireme::ps

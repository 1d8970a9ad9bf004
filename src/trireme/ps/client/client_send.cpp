// How a client's thread reaches servers, and what it sends to them.
#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/ps/client/client_impl.h"
#include "trireme/ps/wire/endpoint.h"

namespace trireme::ps {

using namespace std::chrono_literals;

Link* Client::Impl::link_to(ServerId server) {
  if (auto known = server_links_.find(server); known != server_links_.end()) {
    if (Link* link = loop_.find(known->second)) return link;
  }
  const ServerInfo* info = view_.server(server);
  if (!info || Clock::now() < next_call_) return nullptr;
  try {
    std::string endpoint = endpoint_of(*info, options_.reach);
    if (endpoint.empty()) {
      fail(fmt::format("server {} does not listen for workers on other hosts; start it with --listen HOST:0",
                       info->name));
      return nullptr;
    }
    Link& link = loop_.add(connect_to(endpoint, options_.key, info->name, patience_for(endpoint)), is_unix(endpoint));
    Packer body;
    body.put(Role::worker_of_server).put(id_).put(link.is_unix() ? memory_.reserve() : 0);
    link.send(header(Kind::hello), body.take(), {}, link.is_unix() ? memory_.descriptor() : -1);
    server_links_[server] = link.id();
    return &link;
  } catch (const ProtocolError& error) {
    fail(error.what());
  } catch (const Error&) {
    next_call_ = Clock::now() + 20ms;  // until the coordinator finds that it is gone
  }
  return nullptr;
}

void Client::Impl::send(Operation& operation, ServerId server, const std::vector<std::uint32_t>& shards) {
  Link* link = link_to(server);
  if (!link) return;
  std::uint64_t request = next_id_++;
  requests_[request] = {operation.id, link->id(), shards};
  for (std::uint32_t shard : shards) operation.shards[shard] = Operation::State::sent;
  switch (operation.kind) {
    case Operation::Kind::push:
      return send_push(operation, *link, request, shards);
    case Operation::Kind::init: {
      Payload payload;
      for (std::uint32_t shard : shards) {
        Segment range = view_.layout.shard(shard);
        payload.parts.push_back(std::as_bytes(operation.from.subspan(range.offset, range.count)));
        for (const auto& part : operation.states->parts) {
          payload.parts.push_back(std::as_bytes(std::span(part).subspan(range.offset, range.count)));
        }
      }
      const InitBody body{shards, static_cast<std::uint32_t>(operation.states->parts.size()),
                          operation.states->updates};
      return link->send(header(Kind::init, request), pack(body), std::move(payload));
    }
    default:
      return send_pull(operation, *link, request, shards);
  }
}

void Client::Impl::send_push(Operation& operation, Link& link, std::uint64_t request,
                             const std::vector<std::uint32_t>& shards) {
  const bool encoded = operation.encoded.bytes != nullptr;
  const bool own = encoded || !operation.copied.empty();
  auto memory = own ? std::nullopt : memory_.offset_of(operation.from.data(), operation.from.size());
  PushBody body{
      id_, operation.sequence, operation.clock, operation.lr, link.is_unix() && memory, operation.patient, {}, encoded};
  Payload payload;
  payload.keep = operation.encoded.bytes;
  for (std::uint32_t shard : shards) {
    Segment range = view_.layout.shard(shard);
    PushBody::Part part{shard, read_version_[shard], read_applied_[shard], operation.sparse, {}, 0, 0};
    std::span<const std::byte> values;
    std::size_t begin = range.offset;  // of them in `from`
    if (operation.sparse) {
      part.segments = operation.segments[shard];
      begin = operation.value_begins[shard];
      values = std::as_bytes(operation.from.subspan(begin, operation.value_begins[shard + 1] - begin));
    } else if (encoded) {
      values = operation.encoded.of(shard);
      part.bytes = values.size();
    } else {
      values = std::as_bytes(operation.from.subspan(range.offset, range.count));
    }
    if (body.direct) {
      part.memory = *memory + begin * sizeof(float);
    } else {
      payload.parts.push_back(values);
      bytes_moved_ += values.size();
    }
    body.parts.push_back(std::move(part));
  }
  link.send(header(Kind::push, request), pack(body), std::move(payload));
}

void Client::Impl::send_pull(Operation& operation, Link& link, std::uint64_t request,
                             const std::vector<std::uint32_t>& shards) {
  bool looks = operation.kind == Operation::Kind::look;
  const bool of_update = operation.state >= 0;
  auto memory = looks || of_update ? std::nullopt : memory_.offset_of(operation.into.data(), operation.into.size());
  PullBody body{id_, operation.sequence, operation.clock, PullBody::What::payload, {}};
  if (looks) {
    body.what = PullBody::What::nothing;
  } else if (of_update) {
    body.what = PullBody::What::update;
  } else if (!operation.exact) {
    body.what = PullBody::What::difference;
  } else if (link.is_unix() && memory) {
    body.what = PullBody::What::direct;
  }
  for (std::uint32_t shard : shards) {
    Segment range = view_.layout.shard(shard);
    body.parts.push_back({shard, memory ? *memory + range.offset * sizeof(float) : 0,
                          of_update         ? static_cast<std::uint64_t>(operation.state)
                          : operation.exact ? 0
                                            : codes_->has(shard)});
  }
  link.send(header(Kind::pull, request), pack(body));
}

}  // namespace trireme::ps

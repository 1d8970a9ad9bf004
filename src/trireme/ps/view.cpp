#include "trireme/ps/view.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/ps/wire/endpoint.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {
namespace {

void pack(Packer& to, const Consistency& rule) { to.put(rule.async).put(rule.s); }
Consistency unpack_consistency(Unpacker& from) {
  Consistency rule;
  rule.async = from.flag();
  rule.s = from.get<std::uint64_t>();
  return rule;
}

void pack(Packer& to, const Compression& compression) {
  to.text(compression.codec).text(compression.rules).put(compression.seed);
}
Compression unpack_compression(Unpacker& from) {
  Compression compression;
  compression.codec = from.text();
  compression.rules = from.text();
  compression.seed = from.get<std::uint64_t>();
  return compression;
}

}  // namespace

std::string to_string(const Compression& compression) {
  const std::string rules = compression.rules.empty() ? "" : fmt::format(", rules '{}'", compression.rules);
  return fmt::format("{}{}, seed {}", compression.codec, rules, compression.seed);
}

void pack(Packer& to, const ServerInfo& server) {
  to.put(server.id).text(server.name).text(server.host).text(server.process).text(server.unix_name).text(server.tcp);
}

ServerInfo unpack_server(Unpacker& from) {
  ServerInfo server;
  server.id = from.get<ServerId>();
  for (std::string* text : {&server.name, &server.host, &server.process, &server.unix_name, &server.tcp}) {
    *text = from.text();
  }
  return server;
}

void pack(Packer& to, const JobSpec& spec) {
  Layout(spec.tensors, 1).pack(to);
  pack(to, spec.update);
  pack(to, spec.consistency);
  pack(to, spec.compression);
}

JobSpec unpack_job(Unpacker& from) {
  JobSpec spec;
  spec.tensors = Layout::unpack(from).tensors();
  spec.update = unpack_update(from);
  spec.consistency = unpack_consistency(from);
  spec.compression = unpack_compression(from);
  return spec;
}

const ServerInfo* View::server(ServerId id) const {
  auto found = std::ranges::find(servers, id, &ServerInfo::id);
  return found == servers.end() ? nullptr : &*found;
}

bool View::has_worker(WorkerId id) const { return std::ranges::find(workers, id, &WorkerInfo::id) != workers.end(); }

void pack(Packer& to, const View& view) {
  to.put(view.epoch).put(view.job).put(view.ready).text(view.stop).text(view.failure);
  pack(to, view.update);
  pack(to, view.consistency);
  pack(to, view.compression);
  view.layout.pack(to);
  to.put(view.initialiser);
  to.count(view.servers.size());
  for (auto& server : view.servers) pack(to, server);
  to.count(view.workers.size());
  for (auto& worker : view.workers) to.put(worker.id).put(worker.initial);
  to.count(view.chains.size());
  for (auto& chain : view.chains) to.list(chain);
}

View unpack_view(Unpacker& from) {
  View view;
  view.epoch = from.get<std::uint64_t>();
  view.job = from.get<std::uint64_t>();
  view.ready = from.flag();
  view.stop = from.text();
  view.failure = from.text();
  view.update = unpack_update(from);
  view.consistency = unpack_consistency(from);
  view.compression = unpack_compression(from);
  view.layout = Layout::unpack(from);
  view.initialiser = from.get<WorkerId>();
  view.servers.resize(from.count(24));
  for (auto& server : view.servers) server = unpack_server(from);
  view.workers.resize(from.count(5));
  for (auto& worker : view.workers) {
    worker.id = from.get<WorkerId>();
    worker.initial = from.flag();
  }
  view.chains.resize(from.count(4));
  for (auto& chain : view.chains) chain = from.list<ServerId>();
  if (view.chains.size() != view.layout.shards())
    throw ProtocolError("a view with chains for other shards than it has");
  return view;
}

std::string endpoint_of(const ServerInfo& server, Reach reach) {
  bool same_host = server.host == host_identity();
  if (same_host && (reach == Reach::automatic || server.process == process_identity() || server.tcp.empty())) {
    return server.unix_name;
  }
  return server.tcp;
}

}  // namespace trireme::ps

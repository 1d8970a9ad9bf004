#include "trireme/ps/wire/messages.h"

namespace trireme::ps {
namespace {

void put(Packer& to, const std::vector<Segment>& segments) {
  to.count(segments.size());
  for (const Segment& segment : segments) to.put(segment.offset).put(segment.count);
}

std::vector<Segment> get_segments(Unpacker& from) {
  std::vector<Segment> segments(from.count(16));
  for (Segment& segment : segments) {
    segment.offset = from.get<std::uint64_t>();
    segment.count = from.get<std::uint64_t>();
  }
  return segments;
}

}  // namespace

std::string pack(const PushBody& body) {
  Packer to;
  to.put(body.worker).put(body.sequence).put(body.clock).put(body.lr).put(body.direct).put(body.patient);
  to.put(body.encoded);
  to.count(body.parts.size());
  for (auto& part : body.parts) {
    to.put(part.shard).put(part.read_version).put(part.read_applied).put(part.sparse).put(part.memory);
    to.put(part.bytes);
    put(to, part.segments);
  }
  return to.take();
}

PushBody unpack_push(std::string_view bytes) {
  Unpacker from(bytes);
  PushBody body;
  body.worker = from.get<WorkerId>();
  body.sequence = from.get<std::uint64_t>();
  body.clock = from.get<std::uint64_t>();
  body.lr = from.get<double>();
  body.direct = from.flag();
  body.patient = from.flag();
  body.encoded = from.flag();
  body.parts.resize(from.count(41));
  for (auto& part : body.parts) {
    part.shard = from.get<std::uint32_t>();
    part.read_version = from.get<std::uint64_t>();
    part.read_applied = from.get<std::uint64_t>();
    part.sparse = from.flag();
    part.memory = from.get<std::uint64_t>();
    part.bytes = from.get<std::uint64_t>();
    part.segments = get_segments(from);
  }
  from.end();
  return body;
}

std::string pack(const PullBody& body) {
  Packer to;
  to.put(body.worker).put(body.pushes).put(body.clock).put(body.what).count(body.parts.size());
  for (auto& part : body.parts) to.put(part.shard).put(part.memory).put(part.has);
  return to.take();
}

PullBody unpack_pull(std::string_view bytes) {
  Unpacker from(bytes);
  PullBody body;
  body.worker = from.get<WorkerId>();
  body.pushes = from.get<std::uint64_t>();
  body.clock = from.get<std::uint64_t>();
  auto what = from.get<std::uint8_t>();
  if (what > 4) throw ProtocolError("a pull from the parameter server of a kind that is not known");
  body.what = static_cast<PullBody::What>(what);
  body.parts.resize(from.count(20));
  for (auto& part : body.parts) {
    part.shard = from.get<std::uint32_t>();
    part.memory = from.get<std::uint64_t>();
    part.has = from.get<std::uint64_t>();
  }
  from.end();
  return body;
}

std::string pack(const InitBody& body) { return Packer().list(body.shards).put(body.states).put(body.version).take(); }

InitBody unpack_init(std::string_view bytes) {
  Unpacker from(bytes);
  InitBody body;
  body.shards = from.list<std::uint32_t>();
  body.states = from.get<std::uint32_t>();
  body.version = from.get<std::uint64_t>();
  if (body.states > kMostStates) throw ProtocolError("first values with more states than any update has");
  from.end();
  return body;
}

std::string pack(const ValuesBody& body) {
  Packer to;
  to.put(body.held_s).count(body.parts.size());
  for (auto& part : body.parts) {
    to.put(part.shard).put(part.version).put(part.applied).put(part.minimum);
    to.put(part.base).put(part.number).put(part.bytes);
  }
  return to.take();
}

ValuesBody unpack_values(std::string_view bytes) {
  Unpacker from(bytes);
  ValuesBody body;
  body.held_s = from.get<double>();
  body.parts.resize(from.count(52));
  for (auto& part : body.parts) {
    part.shard = from.get<std::uint32_t>();
    part.version = from.get<std::uint64_t>();
    part.applied = from.get<std::uint64_t>();
    part.minimum = from.get<std::uint64_t>();
    part.base = from.get<std::uint64_t>();
    part.number = from.get<std::uint64_t>();
    part.bytes = from.get<std::uint64_t>();
  }
  from.end();
  return body;
}

std::string pack(const RecordBody& body) {
  Packer to;
  to.put(body.shard).put(body.record).put(body.has_push);
  if (body.has_push) {
    to.put(body.push.worker).put(body.push.sequence).put(body.push.clock).put(body.push.lr).put(body.push.sparse);
    put(to, body.push.segments);
  }
  to.list(body.applies);
  to.put(body.encoded);
  return to.take();
}

RecordBody unpack_record(std::string_view bytes) {
  Unpacker from(bytes);
  RecordBody body;
  body.shard = from.get<std::uint32_t>();
  body.record = from.get<std::uint64_t>();
  body.has_push = from.flag();
  if (body.has_push) {
    body.push.worker = from.get<WorkerId>();
    body.push.sequence = from.get<std::uint64_t>();
    body.push.clock = from.get<std::uint64_t>();
    body.push.lr = from.get<double>();
    body.push.sparse = from.flag();
    body.push.segments = get_segments(from);
  }
  body.applies = from.list<std::uint64_t>();
  body.encoded = from.flag();
  from.end();
  return body;
}

}  // namespace trireme::ps

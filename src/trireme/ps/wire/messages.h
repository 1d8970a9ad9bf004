// The bodies of the frames between workers and servers, and along a chain.
#pragma once
#include <cstdint>
#include <vector>

#include "trireme/ps/server/shard.h"
#include "trireme/ps/view.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {

// One worker's push of some shards. Values follow as payload, shard after shard, as they are or encoded (coder.h), or
// lie in the worker's memory.
struct PushBody {
  struct Part {
    std::uint32_t shard = 0;
    std::uint64_t read_version = 0, read_applied = 0;  // of the weights the gradient was computed with
    bool sparse = false;
    std::vector<Segment> segments;
    std::uint64_t memory = 0;  // where the values lie, with `direct`
    std::uint64_t bytes = 0;   // of the payload, with `encoded`
  };
  WorkerId worker = kNobody;
  std::uint64_t sequence = 0, clock = 0;
  double lr = 0;
  bool direct = false;
  bool patient = false;  // the memory stays as it is until the answer, which may wait until the values were used
  std::vector<Part> parts;
  bool encoded = false;
};
std::string pack(const PushBody& body);
PushBody unpack_push(std::string_view bytes);

struct PullBody {
  // difference: against the state that the worker has, as far as the server knows it; update: the update's state
  enum class What : std::uint8_t { nothing, payload, direct, difference, update };
  struct Part {
    std::uint32_t shard = 0;
    std::uint64_t memory = 0;  // with `direct`
    std::uint64_t has = 0;     // with `difference`: the state's number, 0 for none; with `update`: which
  };
  WorkerId worker = kNobody;
  std::uint64_t pushes = 0, clock = 0;
  What what = What::payload;
  std::vector<Part> parts;
};
std::string pack(const PullBody& body);
PullBody unpack_pull(std::string_view bytes);

// First values. They follow as payload, shard after shard: the weights, then the states of the update.
struct InitBody {
  std::vector<std::uint32_t> shards;
  std::uint32_t states = 0;   // 0: zeros
  std::uint64_t version = 0;  // updates that led to them
};
std::string pack(const InitBody& body);
InitBody unpack_init(std::string_view bytes);

struct ValuesBody {
  struct Part {
    std::uint32_t shard = 0;
    std::uint64_t version = 0, applied = 0, minimum = 0;
    // To a pull of differences: as Shadows::Answer, and the bytes of the payload.
    std::uint64_t base = 0, number = 0, bytes = 0;
  };
  double held_s = 0;  // how long the pull waited for slower workers
  std::vector<Part> parts;
};
std::string pack(const ValuesBody& body);
ValuesBody unpack_values(std::string_view bytes);

// A change of a shard on its way along the chain.
struct RecordBody {
  std::uint32_t shard = 0;
  std::uint64_t record = 0;
  bool has_push = false;
  Contribution push;  // without the values
  std::vector<std::uint64_t> applies;
  bool encoded = false;  // the values that follow
};
std::string pack(const RecordBody& body);
RecordBody unpack_record(std::string_view bytes);

}  // namespace trireme::ps

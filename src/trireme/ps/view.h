// Who is in the job and who keeps which shard, as the coordinator publishes it. Each change has a new epoch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/ps/clock.h"
#include "trireme/ps/layout.h"
#include "trireme/ps/server/update.h"

namespace trireme::ps {

using ServerId = std::uint32_t;
using WorkerId = std::uint32_t;
inline constexpr std::uint32_t kNobody = UINT32_MAX;
// What a worker asks to be that takes no seat of those that the job begins with.
inline constexpr std::int32_t kLateWorker = -2;

struct ServerInfo {
  ServerId id = kNobody;
  std::string name;       // for people
  std::string host;       // host_identity()
  std::string process;    // process_identity()
  std::string unix_name;  // where it listens on its host
  std::string tcp;        // and for others; empty when it does not
};
void pack(Packer& to, const ServerInfo& server);
ServerInfo unpack_server(Unpacker& from);

struct WorkerInfo {
  WorkerId id = kNobody;
  bool initial = false;  // there from the start: its clock counts before its first push
};

// What travels instead of gradients and weights: the texts that compress::Rules are made of.
struct Compression {
  std::string codec = "none", rules;
  std::uint64_t seed = 1;
  // Each worker's own, for codecs that want to know.
  std::int64_t steps_per_epoch = 1;
  double momentum = 0;
};
// What all workers must agree on: "topk:fraction=0.01,ef=on, rules '*.bias=none', seed 1".
std::string to_string(const Compression& compression);

// What a worker declares.
struct JobSpec {
  std::vector<Tensor> tensors;
  UpdateSpec update;
  Consistency consistency;
  Compression compression{};
};
void pack(Packer& to, const JobSpec& spec);
JobSpec unpack_job(Unpacker& from);

struct View {
  std::uint64_t epoch = 0;
  std::uint64_t job = 0;  // random: tells this job from every other
  bool ready = false;     // every shard has its values, every first worker is there
  std::string stop;       // why the job shall end; empty: it shall not
  std::string failure;    // why it cannot go on; empty: it can
  UpdateSpec update;
  Consistency consistency;
  Compression compression;
  Layout layout;
  WorkerId initialiser = kNobody;  // whose values the store begins with
  std::vector<ServerInfo> servers;
  std::vector<WorkerInfo> workers;
  // Of each shard, head first: pushes and pulls go to the head, changes on to the next.
  std::vector<std::vector<ServerId>> chains;

  const ServerInfo* server(ServerId id) const;
  bool has_worker(WorkerId id) const;
  ServerId head(std::size_t shard) const {
    return shard < chains.size() && !chains[shard].empty() ? chains[shard].front() : kNobody;
  }
};
void pack(Packer& to, const View& view);
View unpack_view(Unpacker& from);

// Which of a server's two endpoints to call from this process.
enum class Reach { automatic, tcp };  // tcp: also on one host, but never within one process
std::string endpoint_of(const ServerInfo& server, Reach reach);

// How a connection begins.
enum class Role : std::uint8_t { worker = 1, server, worker_of_server, predecessor };

// Why a server does not do what it is asked.
enum class Refusal : std::uint8_t {
  not_here,  // it is not the head of a shard, as far as it knows
  gap,       // an earlier push of this worker is missing
  gone,      // the worker does not belong to the job any more
};

}  // namespace trireme::ps

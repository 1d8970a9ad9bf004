#include "trireme/train/group/world_servers.h"

#include <algorithm>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/net/join/environment.h"

namespace trireme::train {
namespace {

// From the first rank, who listens there, with the key of this little job.
struct Meeting {
  std::string at;
  net::Key key;
};

// Where others reach the first rank: on one host nowhere in particular. None where that is not known.
std::optional<std::string> first_listens(Communicator& world) {
  if (world.transport() != "tcp") return "";
  const auto host = net::process_environment()("MASTER_ADDR");
  std::vector<std::int64_t> known{host ? 1 : 0};
  world.broadcast(known);
  if (known[0] == 0) return std::nullopt;
  return world.rank() == 0 ? *host + ":0" : "";
}

Meeting tell(Communicator& world, const Meeting& of_first) {
  constexpr std::size_t kLongest = 256;
  std::vector<std::uint8_t> told(kLongest + of_first.key.bytes.size());
  std::ranges::copy(of_first.at.substr(0, kLongest - 1), told.begin());
  std::ranges::copy(of_first.key.bytes, told.begin() + kLongest);
  world.broadcast(View(std::span(told)));
  Meeting meeting{reinterpret_cast<const char*>(told.data()), {.of_job = true}};
  std::copy_n(told.begin() + kLongest, meeting.key.bytes.size(), meeting.key.bytes.begin());
  return meeting;
}

}  // namespace

bool WorldServers::possible(Communicator& world) { return first_listens(world).has_value(); }

WorldServers::WorldServers(Communicator& world, double lease_s) : world_(world) {
  const auto listen = first_listens(world);
  if (!listen) {
    throw ConfigError("servers of ranks on several hosts must find the first: set MASTER_ADDR, as launchers do");
  }
  Meeting meeting;
  if (world.rank() == 0) {
    meeting.key = net::generate_key();
    coordinator_.emplace(ps::CoordinatorOptions{
        .at = *listen, .key = meeting.key, .workers = world.size(), .servers = world.size(), .lease_s = lease_s});
    meeting.at = coordinator_->endpoint();
  }
  meeting = tell(world, meeting);
  server_.emplace(
      ps::ServerOptions{.at = meeting.at, .key = meeting.key, .name = "server-" + std::to_string(world.rank())});
  client_.emplace(ps::ClientOptions{.at = meeting.at, .key = meeting.key, .rank = world.rank()});
}

WorldServers::~WorldServers() = default;

void WorldServers::close() {
  world_.barrier();
  client_.reset();
  world_.barrier();  // servers go when all workers have left
  server_.reset();
  coordinator_.reset();
}

}  // namespace trireme::train

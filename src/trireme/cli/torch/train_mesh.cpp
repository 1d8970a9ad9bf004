#include "trireme/cli/torch/train_mesh.h"

#include <fmt/format.h>

#include <optional>

#include "trireme/base/error.h"
#include "trireme/cli/torch/train_servers.h"
#include "trireme/launch/emulate/hosts.h"
#include "trireme/net/join/environment.h"
#include "trireme/net/join/key_sources.h"
#include "trireme/net/world.h"
#include "trireme/ps/wire/endpoint.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/group/gather_text.h"
#include "trireme/trainer/mesh_choice.h"

namespace trireme::cli {
namespace {

// Servers of its own for each part of the model: the first replica's worker coordinates, each worker serves.
struct Fleet {
  Fleet(const train::Config& config, Mesh& mesh) {
    const auto key = net::key_from_environment(net::process_environment());
    Cast cast{.workers = mesh.shape().data, .replicas = static_cast<int>(config.replicas), .lease_s = config.lease};
    std::string at;
    if (mesh.place().data == 0) {
      coordinator.emplace(coordinator_options(cast, address(config, mesh), key));
      at = coordinator->endpoint();
    }
    train::broadcast_text(mesh.data(), at);
    server = std::make_unique<ps::Server>(server_options(mesh.place().data, at, key));
    client = std::make_unique<ps::Client>(ps::ClientOptions{.at = at, .key = key, .rank = mesh.place().data});
  }

  // On emulated hosts workers meet at their addresses, elsewhere by a name on this host.
  static std::string address(const train::Config& config, Mesh& mesh) {
    const auto network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
    if (network.hosts == 0 && mesh.world().transport() == "tcp") {
      throw ConfigError("--hybrid distbelief: its servers find each other on one host, or on emulated ones (--hosts)");
    }
    if (network.hosts == 0) return ps::fresh_name("fleet");
    const int part = mesh.place().pipe * mesh.shape().tensor + mesh.place().tensor;
    return fmt::format("{}:{}", launch::emulated_address(mesh.world().rank() * network.hosts / mesh.world().size()),
                       29400 + part);
  }

  std::optional<ps::Coordinator> coordinator;
  std::unique_ptr<ps::Server> server;
  std::unique_ptr<ps::Client> client;
};

}  // namespace

bool needs_servers(const train::Config& config) { return sync::Choice::parse(config.strategy).kind->needs_servers; }

train::TrainResult train_on_mesh(const train::Config& config, train::Workload& workload, Communicator& world,
                                 train::WorkerGroup& group, train::TrainOptions how) {
  auto chosen = train::choose_mesh(config, workload, world);
  Mesh mesh(world, chosen.shape);
  how.mesh = &mesh;
  how.mesh_why = chosen.why;
  if (!how.predicted) {
    auto& told = how.predicted.emplace();
    if (chosen.step_s) told.step.emplace().step_ms = 1e3 * *chosen.step_s;
    told.why_not = chosen.why_not;
  }
  std::optional<Fleet> fleet;
  if (needs_servers(config)) how.client = fleet.emplace(config, mesh).client.get();
  auto result = train::train(chosen.config, workload, world, group, how);
  world.barrier();  // others may still need what lies here
  return result;
}

}  // namespace trireme::cli

// A whole parameter server within this process, for tests.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trireme/ps/client/client.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/server/server.h"

namespace trireme::ps {

inline Deadline soon() { return Deadline::in_seconds(60); }

struct JobOptions {
  int workers = 1, servers = 2, replicas = 1;
  std::string at;  // the coordinator's
  Reach reach = Reach::automatic;
  UpdateMakers updates;
  double lease_s = 20;  // machines that test are slow
  std::string checkpoint;
  double restart_s = 30;
  int shards_per_server = 2;
};

struct Job {
  explicit Job(JobOptions given) : options(std::move(given)) {
    CoordinatorOptions setup;
    setup.at = options.at;
    setup.key = key;
    setup.workers = options.workers;
    setup.servers = options.servers;
    setup.replicas = options.replicas;
    setup.shards_per_server = options.shards_per_server;
    setup.lease_s = options.lease_s;
    setup.restart_s = options.restart_s;
    coordinator = std::make_unique<Coordinator>(setup);
    for (int i = 0; i < options.servers; ++i) servers.push_back(server("s" + std::to_string(i)));
  }

  std::unique_ptr<Server> server(const std::string& name) const {
    ServerOptions setup;
    setup.at = coordinator->endpoint();
    setup.key = key;
    setup.name = name;
    setup.updates = options.updates;
    setup.checkpoint = options.checkpoint;
    setup.checkpoint_every_s = 0.02;
    return std::make_unique<Server>(setup);
  }

  std::unique_ptr<Client> client(int rank) const {
    ClientOptions setup;
    setup.at = coordinator->endpoint();
    setup.key = key;
    setup.rank = rank;
    setup.reach = options.reach;
    return std::make_unique<Client>(setup);
  }

  // Runs `work` as every worker at once.
  void run(const JobSpec& spec, const std::vector<float>& initial, const std::function<void(Client&, int)>& work) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < options.workers; ++rank) {
      threads.emplace_back([&, rank] {
        auto worker = client(rank);
        worker->declare(spec, initial, soon());
        work(*worker, rank);
      });
    }
  }

  net::Key key = net::generate_key();
  JobOptions options;
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<Server>> servers;
};

}  // namespace trireme::ps

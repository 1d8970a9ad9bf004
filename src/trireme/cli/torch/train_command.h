// What a user asked of `trireme train`, and the parts that do it: which flags go together, who starts the workers, and
// what a worker does. Private to the command.
#pragma once
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cli/torch/train_flags.h"
#include "trireme/cli/torch/train_servers.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/net/world.h"
#include "trireme/train/config/config.h"

namespace trireme::cli {

struct TrainCommand {
  std::shared_ptr<TrainFlags> flags;
  std::string resume, plan_file, nodes = "1", node, endpoint, bind, key_file, remote_servers = "0", ps_endpoint, join;
  std::optional<cluster::PlanFile> plan = {};
  bool resumes = false, print_config = false, quiet = false, json = false;
};

// ---- train_stop.cpp ----

extern volatile std::sig_atomic_t asked_to_stop;  // the signal; 0: not yet

// Of a worker: the first asks for a checkpoint and an orderly end, a later one ends at once. A terminal and a launcher
// may each send the same.
void on_stop_signal(int number);
// A launcher waits for signals in its own thread. Those of libraries do not know, and may be given one first.
void on_launcher_signal(int number);
void heed_stop_signals(void (*handler)(int));

// ---- train_check.cpp: throw ConfigError where flags do not go together ----

int nodes_of(const TrainCommand& options);
// What a run writes of its hosts must be so: whoever started this worker says which it emulates.
void check_hosts(const train::Config& config, const std::string& launcher);
void check_join_flags(const train::Config& config, const TrainCommand& options);
// Those that are no settings of a run, and do nothing here.
void check_server_flags(const train::Config& config, const TrainCommand& options);
// What can be told before anything is started, by whoever starts it.
void check_start(const train::Config& config, const TrainCommand& options);
// Who serves and who works, where there are servers.
Cast cast_for(const train::Config& config, const TrainCommand& options);

// ---- train_worker.cpp ----

// One worker in a process that somebody else started; with servers it may be one of these.
void run_worker(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options);
void run_with_servers(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options);
// All workers in this process.
void run_as_threads(const train::Config& config, const TrainCommand& options);
// One more worker of a job that runs already; its flags are the job's.
void join(const train::Config& config, const TrainCommand& options);

// ---- train_processes.cpp ----

// This very command line, for each worker, with the folder decided once for all.
void run_as_processes(const train::Config& config, const TrainCommand& options, std::vector<std::string> arguments);

}  // namespace trireme::cli

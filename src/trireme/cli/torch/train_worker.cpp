// What one worker of `trireme train` does, in a process of its own or a thread of this one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/train_command.h"
#include "trireme/cli/torch/train_mesh.h"
#include "trireme/cli/torch/uses_table.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/net/join/environment.h"
#include "trireme/net/join/key.h"
#include "trireme/net/join/key_sources.h"
#include "trireme/operators/optimize.h"
#include "trireme/ps/wire/endpoint.h"
#include "trireme/train/group/server_group.h"
#include "trireme/train/group/world_group.h"
#include "trireme/train/learner/learner.h"
#include "trireme/train/learner/workload.h"
#include "trireme/trainer/late_worker.h"
#include "trireme/trainer/trainer.h"

namespace trireme::cli {
namespace {

train::Verbosity verbosity(const TrainCommand& options) {
  if (options.json) return train::Verbosity::kSilent;
  return options.quiet ? train::Verbosity::kQuiet : train::Verbosity::kNormal;
}

trireme::Options world_options(const train::Config& config) {
  auto options = options_from_environment();
  options.timeout_s = config.timeout;
  options.algorithm = config.algorithm;
  options.deterministic = config.deterministic;
  options.lanes = static_cast<int>(config.lanes);
  return options;
}

train::TrainOptions train_options(const TrainCommand& options) {
  train::TrainOptions how{options.resumes, verbosity(options), &asked_to_stop};
  if (options.plan) how.predicted = train::Prediction::Told{options.plan->predicted, ""};
  return how;
}

// In one line, where it was asked for.
void print_autocast(const std::vector<operators::Use>& uses, const train::Config& config) {
  if (config.autocast != "bf16") return;
  const auto tried = std::ranges::count_if(uses, &operators::Use::autocast);
  const auto rounded = std::ranges::count_if(uses, &operators::Use::bf16);
  if (tried == 0) return;
  fmt::print(stderr, "trireme: autocast: {} of {} passes in bf16, the others are measured faster in f32{}\n", rounded,
             tried, config.print_ops ? "" : "; --print-ops says which");
}

// Of the first worker, to standard error, for standard output may be read by programs: --print-ops, what autocast came
// to, and what was wrong with measuring operators.
void print_operators(const train::Workload& workload, const train::Config& config, int rank) {
  if (rank != 0) return;
  const auto uses = operators::uses(*workload.model);
  if (config.print_ops) fmt::print(stderr, "{}", uses_table(uses));
  print_autocast(uses, config);
  if (const auto note = operators::measurements_note(); !note.empty()) fmt::print(stderr, "trireme: {}\n", note);
}

// Says how it ended, where this is the first worker.
void report(const train::TrainResult& result, const train::Config& config, int rank, const TrainCommand& options) {
  if (rank == 0 || !result.summary.is_null()) {
    if (options.json) std::cout << result.summary.dump() << std::endl;
    if (result.stopped) fmt::print(stderr, "trireme: stopped; go on with: trireme train --resume {}\n", config.out);
  }
  if (result.stopped) throw Exit{128 + (asked_to_stop ? asked_to_stop : SIGINT)};
}

// One worker: in a process of its own, or a thread of this one.
void work(const train::Config& config, train::Workload& workload, Communicator& world, const TrainCommand& options) {
  train::TrainResult result;
  try {
    train::WorldGroup group(world);
    const auto how = train_options(options);
    if (train::uses_mesh(config)) {
      result = train_on_mesh(config, workload, world, group, how);
    } else {
      result = train::train(config, workload, world, group, how);
    }
    group.close();
  } catch (const Aborted&) {
    throw;
  } catch (const std::exception& error) {
    world.abort(error.what());
    throw;
  }
  print_operators(workload, config, world.rank());
  report(result, config, world.rank(), options);
}

// One worker of a parameter server. Over `world` it only tells how good the model is.
void work_with_servers(const train::Config& config, train::Workload& workload, Communicator& world, int rank,
                       const std::string& at, const TrainCommand& options) {
  train::TrainResult result;
  {
    ps::Client client({.at = at, .key = net::key_from_environment(net::process_environment()), .rank = rank});
    train::ServerGroup group(client, rank, config);
    auto how = train_options(options);
    how.client = &client;
    result = train::train(config, workload, world, group, how);
  }
  print_operators(workload, config, rank);
  report(result, config, rank, options);
}

// Whether somebody else says what went wrong: whoever met it first ends, and then we are told to.
bool told_to_stop(double seconds = 3) {
  const auto deadline = Deadline::in_seconds(seconds);
  while (asked_to_stop == 0 && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return asked_to_stop != 0;
}

// One of the processes that run_as_processes started.
void play_part(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options) {
  const auto cast = cast_for(config, options);
  const auto key = net::key_from_environment(net::process_environment());
  const std::string at = ps::client_options_from_environment().at;
  if (cast.is_server(spec.rank)) return serve(cast, spec.rank, at, key);
  if (!cast.is_worker(spec.rank)) return coordinate(cast, at, key, config.timeout);
  train::take_place(config, spec.rank, cast.workers);
  auto workload = train::prepare(config, spec.rank);
  auto alone = train::world_of_one(world_options(config));
  std::optional<ps::Server> server;
  if (cast.colocated) server.emplace(server_options(spec.rank, at, key));
  work_with_servers(config, workload, alone, spec.rank, at, options);
  // Others may still need what lies here: the job is over when the last worker has left.
  if (server) server->wait(Deadline::in_seconds(config.timeout));
}

}  // namespace

void run_worker(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options) {
  try {
    train::take_place(config, spec.local_rank, spec.local_size);
    auto workload = train::prepare(config, spec.local_rank);
    auto world = init(world_options(config));
    work(config, workload, world, options);
  } catch (const Aborted& error) {
    if (spec.rank != 0) throw Exit{error.exit_code()};  // whoever gave up says why
    throw;
  } catch (const PeerLost& error) {
    if (told_to_stop()) throw Exit{error.exit_code()};  // the launcher names who died
    throw;
  } catch (const Timeout& error) {
    // The launcher has named who stood still, or somebody wanted an end, before anybody was late.
    if (told_to_stop(spec.local_rank != 0 ? 3 : 0)) throw Exit{error.exit_code()};
    throw;
  } catch (const Error& error) {
    // Wrong for all of them, as files and flags are: one says so.
    if (spec.local_rank != 0 && told_to_stop()) throw Exit{error.exit_code()};
    throw;
  }
}

// As run_worker: of those who meet the same, or somebody's end, one says so. The launcher names who died.
void run_with_servers(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options) {
  constexpr double kLauncherSees = 0.5;
  try {
    play_part(config, spec, options);
  } catch (const Error& error) {
    if (told_to_stop(spec.rank != 0 ? 3 : kLauncherSees)) throw Exit{error.exit_code()};
    throw;
  }
}

void run_as_threads(const train::Config& config, const TrainCommand& options) {
  train::set_compute_threads(train::compute_threads(config, static_cast<int>(config.workers)));
  std::optional<Exit> exit;
  std::optional<ps::Coordinator> coordinator;
  std::vector<std::unique_ptr<ps::Server>> servers;
  if (needs_servers(config) && !train::uses_mesh(config)) {
    const auto cast = cast_for(config, options);
    const auto key = net::key_from_environment(net::process_environment());
    coordinator.emplace(coordinator_options(cast, options.ps_endpoint, key));
    for (int k = 0; k < cast.all_servers() - cast.remote; ++k) {
      servers.push_back(std::make_unique<ps::Server>(server_options(k, coordinator->endpoint(), key)));
    }
  }
  run_threads(
      static_cast<int>(config.workers),
      [&](Communicator& world) {
        train::take_place(config, world.rank(), world.size());
        auto workload = train::prepare(config, world.rank());
        try {
          if (coordinator) {
            work_with_servers(config, workload, world, world.rank(), coordinator->endpoint(), options);
          } else {
            work(config, workload, world, options);
          }
        } catch (const Exit& code) {
          if (world.rank() == 0) exit = code;
        }
      },
      world_options(config));
  if (exit) throw *exit;
}

void join(const train::Config& config, const TrainCommand& options) {
  check_join_flags(config, options);
  heed_stop_signals(on_stop_signal);
  const auto key = options.key_file.empty() ? net::key_from_environment(net::process_environment())
                                            : net::load_key_file(options.key_file);
  train::set_compute_threads(train::compute_threads(config, 1));
  auto workload = train::prepare(config, 0);
  ps::Client client({.at = options.join, .key = key, .rank = ps::kLateWorker, .connect_timeout_s = config.timeout});
  const auto say = [&](std::string_view line) {
    if (!options.quiet && !options.json) fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  say(fmt::format("worker {} of the job at {}", client.id(), options.join));
  const auto did = train::help(config, workload, client, asked_to_stop, say);
  if (options.json) {
    std::cout << nlohmann::json{{"joined", options.join},
                                {"worker", client.id()},
                                {"batches", did.batches},
                                {"samples", did.samples},
                                {"seconds", did.seconds}}
                     .dump()
              << std::endl;
  } else {
    fmt::print("helped for {:.1f} s: {} batches, {} samples{}\n", did.seconds, did.batches, did.samples,
               asked_to_stop ? "; left as it was asked to" : "");
  }
}

}  // namespace trireme::cli

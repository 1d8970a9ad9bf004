// trireme train: trains a model on several workers of one or several hosts.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/run_folder.h"
#include "trireme/cli/torch/train_flags.h"
#include "trireme/cli/torch/train_mesh.h"
#include "trireme/cli/torch/train_servers.h"
#include "trireme/collective/communicator.h"
#include "trireme/collective/schedule.h"
#include "trireme/net/cores.h"
#include "trireme/net/emulate/hosts.h"
#include "trireme/net/launch/launch.h"
#include "trireme/net/world.h"
#include "trireme/plan/mesh_shape.h"
#include "trireme/plan/plan_file.h"
#include "trireme/ps/endpoint.h"
#include "trireme/train/guest.h"
#include "trireme/train/learner.h"
#include "trireme/train/ps_crew.h"
#include "trireme/train/straggle.h"
#include "trireme/train/trainer.h"
#include "trireme/train/workload.h"
#include "trireme/train/world_crew.h"

namespace trireme::cli {
namespace {

struct TrainCommand {
  std::shared_ptr<TrainFlags> flags;
  std::string resume, plan_file, nodes = "1", node, endpoint, bind, key_file, remote_servers = "0", ps_endpoint, join;
  std::optional<plan::PlanFile> plan = {};
  bool resumes = false, print_config = false, quiet = false, json = false;
};

volatile std::sig_atomic_t asked_to_stop = 0;

volatile std::int64_t asked_at_ms = 0;

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// The first asks for a checkpoint and an orderly end, a later one ends at once. A terminal and a launcher may each send
// the same.
void on_stop_signal(int number) {
  constexpr std::int64_t kSameMs = 300;
  if (asked_to_stop == 0) {
    asked_to_stop = number;
    asked_at_ms = milliseconds();
  } else if (milliseconds() - asked_at_ms > kSameMs) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

// A launcher waits for signals in its own thread. Those of libraries do not know, and may be given one first.
void on_launcher_signal(int number) {
  if (::gettid() != ::getpid()) {
    ::tgkill(::getpid(), ::getpid(), number);
  } else {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

void heed_stop_signals(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

train::Verbosity verbosity(const TrainCommand& options) {
  if (options.json) return train::Verbosity::kSilent;
  return options.quiet ? train::Verbosity::kQuiet : train::Verbosity::kNormal;
}

train::Config resolve_all(TrainCommand& options) {
  if (!options.plan_file.empty()) options.plan = plan::load_plan(options.plan_file);
  const auto* plan = options.plan ? &*options.plan : nullptr;
  if (!options.resumes) return resolve(*options.flags, default_config(), plan);
  std::string folder = options.resume, out;
  for (const auto& [key, text] : all_given(*options.flags)) {
    if (!key.starts_with("model.args.") && train::find_field(key).key == "out.dir") out = text;
  }
  if (folder.empty()) folder = out.empty() ? newest_run() : out;
  const auto base = config_in(folder);
  std::error_code none;
  if (!out.empty() && folder != out && !std::filesystem::equivalent(folder, out, none)) {
    throw ConfigError(fmt::format("--out {}: a resumed run goes on in {}; leave out --out", out, folder));
  }
  auto config = resolve(*options.flags, base, plan);
  config.out = folder;
  return config;
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

// Says how it ended, where this is the first worker.
void report(const train::TrainResult& result, const train::Config& config, int rank, const TrainCommand& options) {
  if (rank == 0) {
    if (options.json) std::cout << result.summary.dump() << std::endl;
    if (result.stopped) fmt::print(stderr, "trireme: stopped; go on with: trireme train --resume {}\n", config.out);
  }
  if (result.stopped) throw Exit{128 + (asked_to_stop ? asked_to_stop : SIGINT)};
}

// One worker: in a process of its own, or a thread of this one.
void work(const train::Config& config, train::Workload& workload, Communicator& world, const TrainCommand& options) {
  train::TrainResult result;
  try {
    train::WorldCrew crew(world);
    const auto how = train_options(options);
    if (train::uses_mesh(config)) {
      result = train_on_mesh(config, workload, world, crew, how);
    } else {
      result = train::train(config, workload, world, crew, how);
    }
    crew.close();
  } catch (const Aborted&) {
    throw;
  } catch (const std::exception& error) {
    world.abort(error.what());
    throw;
  }
  report(result, config, world.rank(), options);
}

// One worker of a parameter server. Over `world` it only tells how good the model is.
void work_with_servers(const train::Config& config, train::Workload& workload, Communicator& world, int rank,
                       const std::string& at, const TrainCommand& options) {
  train::TrainResult result;
  {
    ps::Client client({.at = at, .key = net::key_from_environment(net::process_environment()), .rank = rank});
    train::PsCrew crew(client, rank, config);
    auto how = train_options(options);
    how.client = &client;
    result = train::train(config, workload, world, crew, how);
  }
  report(result, config, rank, options);
}

// Whether somebody else says what went wrong: whoever met it first ends, and then we are told to.
bool told_to_stop() {
  constexpr int kTries = 300;
  for (int k = 0; k < kTries && asked_to_stop == 0; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return asked_to_stop != 0;
}

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
  } catch (const Error& error) {
    // Wrong for all of them, as files and flags are: one says so.
    if (spec.local_rank != 0 && told_to_stop()) throw Exit{error.exit_code()};
    throw;
  }
}

Cast cast_for(const train::Config& config, const TrainCommand& options) {
  auto cast = cast_of(config, static_cast<int>(parse_integer(options.remote_servers, "--remote-servers", 0, 4096)));
  if (cast.remote > 0 && options.ps_endpoint.empty()) {
    throw ConfigError("--remote-servers: they must find us; add --ps-endpoint HOST:PORT");
  }
  return cast;
}

// One of the processes that run_as_processes started.
void run_with_servers(const train::Config& config, const net::WorldSpec& spec, const TrainCommand& options) {
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

// What a run writes of its hosts must be so: whoever started this worker says which it emulates.
void check_hosts(const train::Config& config, const std::string& launcher) {
  const char* emulated = std::getenv("TRIREME_HOSTS");
  if (config.hosts == (emulated ? emulated : net::kNoHosts)) return;
  throw ConfigError(fmt::format("--hosts {}: the hosts are {}'s to emulate; give it --hosts, or this --hosts none",
                                config.hosts, launcher));
}

int nodes_of(const TrainCommand& options) {
  return static_cast<int>(parse_integer(options.nodes, "--nnodes", 1, 1 << 16));
}

void check_join_flags(const train::Config& config, const TrainCommand& options) {
  const std::pair<const char*, bool> flags[] = {{"--nnodes", nodes_of(options) > 1},
                                                {"--ps-endpoint", !options.ps_endpoint.empty()},
                                                {"--node-rank", !options.node.empty()},
                                                {"--rdzv-endpoint", !options.endpoint.empty()},
                                                {"--bind", !options.bind.empty()},
                                                {"--remote-servers", options.remote_servers != "0"},
                                                {"--launch threads", config.launch == "threads"}};
  for (const auto& [flag, given] : flags) {
    if (given) throw ConfigError(fmt::format("{}: is for who starts a job; leave it out with --join", flag));
  }
  if (!needs_servers(config) || train::uses_mesh(config)) {
    throw ConfigError("--join: the job has servers, which share out its batches; add --strategy ps-async");
  }
}

// One more worker of a job that runs already; its flags are the job's.
void join(const train::Config& config, const TrainCommand& options) {
  check_join_flags(config, options);
  heed_stop_signals(on_stop_signal);
  const auto key = options.key_file.empty() ? net::key_from_environment(net::process_environment())
                                            : net::load_key_file(options.key_file);
  train::set_compute_threads(train::compute_threads(config, 1));
  auto workload = train::prepare(config, 0);
  ps::Client client({.at = options.join, .key = key, .rank = ps::kGuest, .connect_timeout_s = config.timeout});
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

// Those that are no settings of a run, and do nothing here.
void check_server_flags(const train::Config& config, const TrainCommand& options) {
  if (needs_servers(config) && !train::uses_mesh(config)) return;
  const char* flag = options.remote_servers != "0"  ? "--remote-servers"
                     : !options.ps_endpoint.empty() ? "--ps-endpoint"
                                                    : nullptr;
  if (flag) {
    throw ConfigError(fmt::format(
        "{}: has no effect {}; leave it out", flag,
        needs_servers(config) ? "on a mesh, where every worker serves its own part" : "without a --strategy ps-*"));
  }
}

// Threads are of one process on one host, and need no launcher.
void check_thread_flags(const TrainCommand& options) {
  const std::pair<const char*, bool> flags[] = {{"--nnodes", nodes_of(options) > 1},
                                                {"--node-rank", !options.node.empty()},
                                                {"--rdzv-endpoint", !options.endpoint.empty()},
                                                {"--bind", !options.bind.empty()},
                                                {"--key-file", !options.key_file.empty()}};
  for (const auto& [flag, given] : flags) {
    if (given) {
      throw ConfigError(
          fmt::format("{}: threads are all in one process here; leave it out, or --launch threads", flag));
    }
  }
}

// What can be told before anything is started, by whoever starts it.
void check_start(const train::Config& config, const TrainCommand& options) {
  if (config.launch == "threads") check_thread_flags(options);
  std::error_code none;
  if (std::filesystem::exists(config.out, none) && !std::filesystem::is_directory(config.out, none)) {
    throw ConfigError(fmt::format("--out {}: there is a file of that name; name a folder", config.out));
  }
  if (nodes_of(options) > 1) return;  // each says for itself how many workers it has
  const auto shape = train::told_mesh(config).value_or(plan::MeshShape{.data = static_cast<int>(config.workers)});
  if (shape.size() != config.workers) {
    throw ConfigError(
        fmt::format("--mesh {}: that is {} workers, and there are {}; make data × pipe × tensor {} or "
                    "change --workers",
                    config.mesh, shape.size(), config.workers, config.workers));
  }
  if (config.mesh != "auto") {
    train::Straggle(config.straggle).check_rank(shape.data, train::uses_mesh(config) ? "replicas" : "workers");
  }
}

// This very command line, for each worker, with the folder decided once for all.
void run_as_processes(const train::Config& config, const TrainCommand& options, std::vector<std::string> arguments) {
  net::LaunchSpec spec;
  spec.name = "trireme train";
  spec.command = {net::own_program(), "train"};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.command.insert(spec.command.end(), {"--out", config.out});
  spec.workers = static_cast<int>(config.workers);
  spec.transport = config.transport;
  spec.network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
  spec.output = net::Output::passthrough;
  spec.bind = options.bind;
  spec.key_file = options.key_file;
  spec.endpoint = options.endpoint;
  if (!spec.endpoint.empty()) spec.timeout_s = config.timeout;
  spec.nodes = nodes_of(options);
  if (spec.nodes > 1 && options.node.empty()) {
    throw ConfigError(
        fmt::format("--nnodes {} needs --node-rank, 0 to {}, another on each node", spec.nodes, spec.nodes - 1));
  }
  if (!options.node.empty()) {
    spec.node = static_cast<int>(parse_integer(options.node, "--node-rank", 0, spec.nodes - 1));
  }
  spec.grace_s = 2;
  auto threads = std::to_string(train::compute_threads(config, spec.workers));
  spec.env = {{"OMP_NUM_THREADS", threads}, {"OPENBLAS_NUM_THREADS", threads}};
  if (needs_servers(config) && !train::uses_mesh(config)) {
    if (spec.nodes > 1) {
      throw ConfigError(
          fmt::format("--nnodes with --strategy {}: start servers on other hosts by hand, with trireme serve, and say "
                      "how many with "
                      "--remote-servers",
                      config.strategy));
    }
    const auto cast = cast_for(config, options);
    spec.workers = cast.processes();
    spec.called = [cast](int rank) { return cast.name(rank); };
    spec.expendable = [cast](int rank) { return cast.expendable(rank); };
    auto endpoint = options.ps_endpoint.empty() ? ps::fresh_name("train") : options.ps_endpoint;
    if (spec.network.hosts > 0) {
      net::check_emulated_network(spec.network, cast.workers, spec.transport);
      if (!options.ps_endpoint.empty()) throw ConfigError("--hosts: emulated hosts reach no others; no --ps-endpoint");
      spec.host_of = [cast, hosts = spec.network.hosts](int rank) { return cast.host(rank, hosts); };
      endpoint = net::emulated_address(0) + ":29400";  // nobody else is there
    }
    spec.env.emplace_back("TRIREME_PS", endpoint);
  }
  heed_stop_signals(on_launcher_signal);
  auto result = net::launch(spec);
  // A worker that ended by itself has said why.
  if (result.exit_code != 0 && (result.exit_code >= 128 || result.rank < 0) && !result.failure.empty() &&
      result.exit_code != 128 + SIGINT && result.exit_code != 128 + SIGTERM) {
    fmt::print(stderr, "trireme: {}\n", result.failure);
  }
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

// A plan counts on a core for each worker at least.
void warn_of_few_cores(const train::Config& config, const TrainCommand& options) {
  const int cores = net::usable_cores();
  if (!options.plan || config.workers <= cores) return;
  fmt::print(
      stderr,
      "trireme: warning: {}: {} workers share the {} core{} of this host, where the plan counts on one each: its "
      "prediction will not hold; spread them over hosts with --nnodes\n",
      options.plan_file, config.workers, cores, cores == 1 ? "" : "s");
}

void run(TrainCommand& options, const std::vector<std::string>& arguments) {
  if (options.resumes && !options.join.empty()) {
    throw ConfigError("--resume: is for who starts a job; leave it out with --join");
  }
  auto config = resolve_all(options);
  refuse_idle(*options.flags, config);
  check_server_flags(config, options);
  if (config.algorithm != "auto") find_algorithm(Collective::all_reduce, config.algorithm);
  if (options.print_config) {
    std::cout << train::to_json(config).dump(2) << std::endl;
    return;
  }
  if (!options.join.empty()) return join(config, options);
  auto spec = net::world_from_environment();
  if (spec.launcher == "none") {
    check_start(config, options);
    warn_of_few_cores(config, options);
  }
  if (spec.launcher != "none" || config.launch == "threads") heed_stop_signals(on_stop_signal);
  if (config.out.empty()) config.out = fresh_folder(config);
  if (spec.launcher != "none") check_hosts(config, spec.launcher);
  if (spec.launcher != "none" && needs_servers(config) && !train::uses_mesh(config)) {
    run_with_servers(config, spec, options);
  } else if (spec.launcher != "none") {
    run_worker(config, spec, options);
  } else if (config.launch == "threads") {
    run_as_threads(config, options);
  } else {
    run_as_processes(config, options, arguments);
  }
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainCommand>();
  auto* command = app.add_subcommand("train", "Train a model on several workers");
  command->footer("example: trireme train --model resnet18 --data cifar10 --workers 2 --epochs 10");
  options->flags = add_train_flags(*command);
  auto* resume =
      command
          ->add_option("--resume", options->resume, "go on exactly where DIR (default: --out, or the newest) stopped")
          ->type_name("[DIR]")
          ->expected(0, 1);
  command
      ->add_option("--plan", options->plan_file,
                   "run what trireme plan chose, and hold its prediction against what happens")
      ->type_name("FILE");
  command->add_flag("--print-config", options->print_config, "print every setting as it would be used, and stop");
  command->add_flag("--quiet", options->quiet, "print one line at the end");
  command->add_flag("--json", options->json, "print one JSON object at the end");
  command->add_option("--nnodes", options->nodes, "hosts in the job")->type_name("N")->group("Workers");
  command->add_option("--node-rank", options->node, "which of them this is, from 0")->type_name("R")->group("Workers");
  command->add_option("--rdzv-endpoint", options->endpoint, "where node 0 listens")
      ->type_name("HOST:PORT")
      ->group("Workers");
  command->add_option("--remote-servers", options->remote_servers, "ps-*: servers that are started by hand elsewhere")
      ->type_name("N")
      ->group("Workers");
  command->add_option("--ps-endpoint", options->ps_endpoint, "ps-*: where servers on other hosts find this run")
      ->type_name("HOST:PORT")
      ->group("Workers");
  command
      ->add_option("--join", options->join,
                   "ps-async: help a job that runs, whose --ps-endpoint this is, with its flags")
      ->type_name("HOST:PORT")
      ->group("Workers");
  command->add_option("--bind", options->bind, "address the listeners bind to")->type_name("ADDR")->group("Workers");
  command->add_option("--key-file", options->key_file, "the job's key, mode 0600")->type_name("FILE")->group("Workers");
  command->callback([options, resume] {
    options->resumes = resume->count() > 0;
    run(*options, program_arguments());
  });
}

}  // namespace trireme::cli

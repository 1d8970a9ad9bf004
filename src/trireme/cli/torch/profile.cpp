// trireme profile: measures what a step of a model costs here, for simulations and plans.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/profile_table.h"
#include "trireme/cli/torch/profiling.h"
#include "trireme/cli/torch/train_flags.h"
#include "trireme/cluster/profile/profile_json.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/launch/launch.h"
#include "trireme/net/world.h"
#include "trireme/train/learner/learner.h"

namespace trireme::cli {

cluster::Profile profile_on_threads(const train::Config& config, const train::ProfilerOptions& options) {
  train::set_compute_threads(train::compute_threads(config, static_cast<int>(config.workers)));
  cluster::Profile first;
  run_threads(static_cast<int>(config.workers), [&](Communicator& world) {
    train::take_place(config, world.rank(), world.size());
    auto own = options;
    if (world.rank() != 0) own.progress = [](std::string_view) {};
    auto workload = train::prepare(config, world.rank());
    auto profile = train::profile_model(config, workload, world, own);
    if (world.rank() == 0) first = std::move(profile);
  });
  return first;
}

namespace {

struct ProfileOptions {
  std::shared_ptr<TrainFlags> flags;
  std::string out, noise_steps = "20";
  bool json = false, quiet = false;
};

// Of train's settings, besides those of the model and the data, what measuring depends on.
constexpr std::array<std::string_view, 24> kProfiled{
    "train.loss",         "train.metric",         "train.batch",    "train.steps",    "train.optimizer",
    "train.lr",           "train.momentum",       "train.nesterov", "train.beta1",    "train.beta2",
    "train.weight_decay", "train.trust",          "train.epsilon",  "train.autocast", "train.seed",
    "run.workers",        "parallel.tensor_rule", "run.launch",     "run.threads",    "run.cores",
    "run.device",         "train.deterministic",  "train.ops",      "train.op_memory"};

bool is_profiled(std::string_view key) {
  return key.starts_with("model.") || key.starts_with("data.") || std::ranges::find(kProfiled, key) != kProfiled.end();
}

// Flags and --set of what only training does. A file of settings may be training's and hold more.
void refuse_training(const TrainFlags& flags) {
  auto given = flags.given;
  for (const auto& text : flags.settings) given.push_back(split_setting("--set", text));
  for (const auto& [key, text] : given) {
    if (is_profiled(key)) continue;
    const auto& field = train::find_field(key);
    if (is_profiled(field.key)) continue;
    throw ConfigError(fmt::format(
        "{}: a profile is of what a step computes on this host, whatever is exchanged and written; leave it out",
        field.flag));
  }
}

train::ProfilerOptions profiler_options(const train::Config& config, const ProfileOptions& options, int rank) {
  train::ProfilerOptions how;
  if (config.steps > 0)
    how.steps = static_cast<int>(parse_integer(std::to_string(config.steps), "--steps", 3, 100'000));
  how.noise_steps = static_cast<int>(parse_integer(options.noise_steps, "--noise-steps", 0, 1'000'000));
  if (rank == 0 && !options.quiet && !options.json) {
    how.progress = [](std::string_view what) { fmt::print(stderr, "measuring: {}\n", what); };
  }
  return how;
}

void report(const cluster::Profile& profile, const ProfileOptions& options) {
  if (!options.out.empty()) cluster::save_profile(profile, options.out);
  if (options.json) {
    std::cout << cluster::to_json(profile).dump() << std::endl;
  } else if (!options.quiet) {
    std::cout << profile_table(profile) << std::flush;
    if (!options.out.empty()) std::cout << "written to " << options.out << std::endl;
  }
}

void profile_beside_others(const train::Config& config, const net::WorldSpec& spec, const ProfileOptions& options) {
  train::take_place(config, spec.local_rank, spec.local_size);
  auto workload = train::prepare(config, spec.local_rank);
  auto world = init();
  try {
    const auto profile = train::profile_model(config, workload, world, profiler_options(config, options, spec.rank));
    if (spec.rank == 0) report(profile, options);
  } catch (const std::exception& error) {
    world.abort(error.what());
    throw;
  }
}

// One of the workers that were started to compute at the same time.
void run_worker(const train::Config& config, const net::WorldSpec& spec, const ProfileOptions& options) {
  constexpr std::chrono::seconds kForTheFirst{3};
  try {
    profile_beside_others(config, spec, options);
  } catch (const Aborted& error) {
    if (spec.rank != 0) throw Exit{error.exit_code()};  // whoever gave up says why
    throw;
  } catch (const std::exception&) {
    // Wrong for all of them, as models, files and flags are: the first says so, and the launcher ends the others.
    if (spec.local_rank != 0) std::this_thread::sleep_for(kForTheFirst);
    throw;
  }
}

// This very command line, for each worker.
void run_as_processes(const train::Config& config, const std::vector<std::string>& arguments) {
  launch::LaunchSpec spec;
  spec.name = "trireme profile";
  spec.command = {launch::own_program(), "profile"};
  spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
  spec.workers = static_cast<int>(config.workers);
  spec.output = launch::Output::passthrough;
  spec.grace_s = 2;
  const auto threads = std::to_string(train::compute_threads(config, spec.workers));
  spec.env = {{"OMP_NUM_THREADS", threads}, {"OPENBLAS_NUM_THREADS", threads}};
  const auto result = launch::launch(spec);
  // A worker that ended by itself has said why.
  if ((result.exit_code >= 128 || result.rank < 0) && !result.failure.empty() && result.exit_code != 128 + SIGINT &&
      result.exit_code != 128 + SIGTERM) {
    fmt::print(stderr, "trireme: {}\n", result.failure);
  }
  if (result.exit_code != 0) throw Exit{result.exit_code};
}

void run(const ProfileOptions& options, const std::vector<std::string>& arguments) {
  refuse_training(*options.flags);
  const auto config = resolve(*options.flags);
  const auto spec = net::world_from_environment();
  make_autocast_work(config);
  if (spec.launcher != "none") return run_worker(config, spec, options);
  if (config.hosts != "none")
    throw ConfigError("--hosts: a profile is of this host; leave it out, or use `run --hosts`");
  const auto how = profiler_options(config, options, 0);
  if (config.launch == "threads" || config.workers == 1) {
    return report(profile_on_threads(config, how), options);
  }
  run_as_processes(config, arguments);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  auto* command = app.add_subcommand("profile", "Measure what a step of a model costs here");
  command->footer("example: trireme profile --model resnet18 --data cifar10 --batch 16 -o profile.json");
  options->flags = add_train_flags(*command);
  command->add_option("-o,--output", options->out, "write the profile there, as JSON")->type_name("FILE");
  command->add_option("--noise-steps", options->noise_steps, "of training, to learn how noisy gradients are (0: none)")
      ->type_name("N");
  command->add_flag("--json", options->json, "print the profile as one JSON object");
  command->add_flag("--quiet", options->quiet, "print nothing");
  command->callback([options] { run(*options, program_arguments()); });
}

}  // namespace trireme::cli

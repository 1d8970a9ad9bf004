// trireme train: trains a model on several workers of one or several hosts.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/run_folder.h"
#include "trireme/cli/torch/train_command.h"
#include "trireme/cli/torch/train_mesh.h"
#include "trireme/collective/schedule.h"

namespace trireme::cli {
namespace {

train::Config resolve_all(TrainCommand& options) {
  if (!options.plan_file.empty()) options.plan = cluster::load_plan(options.plan_file);
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

// A plan counts on a core for each worker at least.
void warn_of_few_cores(const train::Config& config, const TrainCommand& options) {
  const int cores = usable_cores();
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
  make_autocast_work(config);
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

// trireme compare: trains variants of a run in turn and says how they differ.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/compare_screen.h"
#include "trireme/cli/torch/train_flags.h"
#include "trireme/collective/schedule.h"
#include "trireme/launch/launch.h"
#include "trireme/report/compare/comparison_run.h"
#include "trireme/report/compare/comparison_text.h"
#include "trireme/train/config/schedule.h"
#include "trireme/train/learner/workload.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::cli {
namespace {

struct CompareOptions {
  std::shared_ptr<TrainFlags> flags;
  std::vector<std::vector<std::string>> vary;
  std::string seeds = "1";
  bool quiet = false, json = false;
};

StopRequest stop_request;

void on_signal(int number) { stop_request.note(number); }

void heed_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// What else can be told before the first run: names, and whether model and data go together. Each combination of those
// once: opening data takes a while.
class Checker {
 public:
  void operator()(const train::Config& config) {
    if (config.algorithm != "auto") find_algorithm(Collective::all_reduce, config.algorithm);
    auto network = net::parse_emulated_network(config.hosts, config.bandwidth, config.latency);
    net::check_emulated_network(network, config.workers, config.transport);
    train::make_optimizer(config.optimizer, {});
    train::make_schedule(config.schedule, {.total_steps = 100, .steps_per_epoch = 10});
    auto whole = train::to_json(config);
    auto data = whole["data"].dump() + config.loss;
    if (data != opened_) {
      shape_ = train::open_data(config).train->shape();
      opened_ = data;
    }
    const auto objective = train::make_objective(config.loss, config.metric, shape_, config.data);
    if (metric_.empty()) metric_ = objective.first().key;
    if (metric_ != objective.first().key) {
      throw ConfigError(fmt::format("variants are judged by {} and {}; name one for all with --metric",
                                    train::compared_by(metric_).title, objective.first().title));
    }
    if (seen_.insert(data + whole["model"].dump()).second) train::build_model(config, shape_);
  }

  train::ComparedBy metric() const { return train::compared_by(metric_); }

 private:
  std::string opened_, metric_;
  data::Shape shape_;
  std::set<std::string> seen_;
};

std::string compare_folder() {
  auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &local);
  auto base = fmt::format("runs/{}-compare", time), folder = base;
  for (int k = 2; std::filesystem::exists(folder); ++k) folder = fmt::format("{}-{}", base, k);
  return folder;
}

void report(const train::Comparison& comparison, const std::string& folder, const CompareOptions& options) {
  if (options.json) {
    auto json = train::to_json(comparison);
    json["out"] = folder;
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  if (!options.quiet) std::cout << "\n";
  std::cout << train::comparison_table(comparison, train::screen_of(STDOUT_FILENO));
  std::cout << fmt::format("Written to {}: compare.html, compare.csv, compare-curves.csv, compare.json\n", folder)
            << std::flush;
}

void run(CompareOptions& options) {
  auto base = resolve(*options.flags);
  auto seeds = parse_integer(options.seeds, "--seeds", 1, 1000);
  Checker checker;
  auto comparison = train::plan_comparison(base, options.vary, seeds, std::ref(checker));
  comparison.by = checker.metric();
  auto folder = base.out.empty() ? compare_folder() : base.out;
  heed_signals();
  CompareScreen screen(comparison, train::screen_of(STDERR_FILENO), options.quiet || options.json);
  train::run_comparison(comparison, {launch::own_program(), folder, &stop_request}, screen.watch());
  report(comparison, folder, options);
  if (stop_request.asked()) {
    fmt::print(stderr, "trireme: stopped; the same command with --out {} goes on\n", folder);
    throw Exit{128 + stop_request.signal};
  }
  for (const auto& one : comparison.runs) {
    if (!one.finished()) throw Exit{1};
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand("compare", "Train variants in turn and compare them");
  command->footer(
      "All flags of trireme train are understood; --out is the folder of the comparison (default runs/TIME-compare),\n"
      "--target or --target-accuracy the accuracy whose time is compared (default: the lowest mean of the variants).\n"
      "example: trireme compare --vary batch 32 128 512 --vary workers 1 2 --seeds 3 --epochs 4\n"
      "         trireme compare --vary strategy allreduce local-sgd:H=8 gossip-dpsgd --target-accuracy 0.85");
  command->add_option("--vary", options->vary, "a setting of train and the values to compare; may be repeated")
      ->type_name("NAME VALUE...")
      ->expected(1, 1 << 16);
  command->add_option("--seeds", options->seeds, "runs of each variant, with seeds --seed, --seed + 1, … (1)")
      ->type_name("K");
  command->add_flag("--quiet", options->quiet, "print the table alone");
  command->add_flag("--json", options->json, "print one JSON object at the end");
  options->flags = add_train_flags(*command);
  command->callback([options] { run(*options); });
}

}  // namespace trireme::cli

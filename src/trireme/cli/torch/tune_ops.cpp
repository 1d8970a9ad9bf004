// trireme tune --ops: measures the operators of a model's layers with care and keeps the times for `--ops auto`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/train_flags.h"
#include "trireme/cli/torch/uses_table.h"
#include "trireme/operators/optimize.h"
#include "trireme/ops/measurements.h"
#include "trireme/train/learner/workload.h"

namespace trireme::cli {
namespace {

struct TuneOpsOptions {
  std::shared_ptr<TrainFlags> flags;
  bool ops = false, json = false;
};

// What layers' shapes and the number of threads depend on.
constexpr std::array<std::string_view, 6> kShaping{"train.batch", "train.op_memory", "train.seed",
                                                   "run.workers", "run.threads",     "train.loss"};

void refuse_others(const TrainFlags& flags) {
  for (const auto& [key, text] : all_given(flags)) {
    const auto& field = train::find_field(key);
    const std::string_view name = field.key;
    if (name.starts_with("model.") || name.starts_with("data.") || std::ranges::find(kShaping, name) != kShaping.end())
      continue;
    throw ConfigError(fmt::format("{}: has no effect on the shapes of layers; leave it out", field.flag));
  }
}

using Uses = std::vector<operators::Use>;

// One step, so that every pass of every layer is met.
Uses step_with(train::Workload& work, const train::Config& config, operators::Thoroughness thoroughness) {
  auto settings = train::operators_of(config);
  settings.thoroughness = thoroughness;
  operators::optimize(*work.model, settings);
  const auto input = train::first_samples(work, config.batch), target = train::first_targets(work, config.batch);
  work.model->zero_grad();
  (*work.objective.loss)(work.model->forward(input), target).backward();
  Uses chosen;
  for (auto& use : operators::uses(*work.model)) {
    const auto same = [&](const operators::Use& other) {
      return other.operation == use.operation && other.shape == use.shape && other.pass == use.pass;
    };
    if (use.candidates.size() > 1 && std::ranges::none_of(chosen, same)) chosen.push_back(std::move(use));
  }
  return chosen;
}

double time_of(const operators::Use& use, const std::string& implementation) {
  const auto at = std::ranges::find(use.candidates, implementation, &operators::Use::Candidate::implementation);
  return at == use.candidates.end() ? INFINITY : at->us;
}

void tune_ops(const TuneOpsOptions& options) {
  constexpr double kNear = 1.1;  // times the best
  refuse_others(*options.flags);
  const auto config = resolve(*options.flags);
  train::set_compute_threads(train::compute_threads(config, static_cast<int>(config.workers)));
  auto work = train::prepare(config);
  const double begin = now_seconds();
  // What runs have found by themselves, or find now, beside what care finds.
  const Uses before = step_with(work, config, operators::Thoroughness::quick);
  const Uses found = step_with(work, config, operators::Thoroughness::thorough);
  std::size_t near = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const auto& use = found[k];
    const double best = std::ranges::min_element(use.candidates, {}, &operators::Use::Candidate::us)->us;
    near += time_of(use, before[k].picked) <= kNear * best;
    if (!options.json) continue;
    nlohmann::ordered_json line{{"op", use.operation},       {"shape", use.shape},
                                {"pass", use.pass},          {"threads", torch::get_num_threads()},
                                {"picked", use.picked},      {"us", use.measured_us},
                                {"before", before[k].picked}};
    for (const auto& [name, us] : use.candidates) line["candidates"][name] = us;
    std::cout << line.dump() << "\n";
  }
  const auto note = operators::measurements_note();
  if (!options.json) {
    std::cout << uses_table(found)
              << fmt::format(
                     "{} choices on {} thread{} in {:.1f} s; {} of them were within 10 % of the best before\n{}\n",
                     found.size(), torch::get_num_threads(), torch::get_num_threads() == 1 ? "" : "s",
                     now_seconds() - begin, near,
                     note.empty() ? "kept in " + ops::measurements_path().string() : "not kept");
  }
  std::cout << std::flush;
  if (!note.empty()) throw Error(note);
}

}  // namespace

void add_tune_ops(CLI::App& app) {
  auto options = std::make_shared<TuneOpsOptions>();
  auto* command = app.add_subcommand("tune", "Measure the operators of a model's layers, for --ops auto");
  command->footer("example: trireme tune --ops --model resnet18 --data cifar10 --batch 16 --threads 2");
  options->flags = add_train_flags(*command);
  command->remove_option(command->get_option("--ops"));  // which of them run: here all
  command->add_flag("--ops", options->ops, "the operators of a model; without it: what communication costs");
  command->add_flag("--json", options->json, "one JSON object a choice");
  command->callback([options] { tune_ops(*options); });
}

}  // namespace trireme::cli

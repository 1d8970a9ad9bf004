// `trireme diff predicted.json run.json`: where a prediction and what happened differ.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/error.h"
#include "trireme/cli/command.h"
#include "trireme/cli/terminal.h"
#include "trireme/cluster/diff/difference.h"

namespace trireme::cli {
namespace {

struct DiffOptions {
  std::string predicted, measured;
  bool json = false;
};

cluster::Difference difference_of(const DiffOptions& options) {
  if (!options.measured.empty()) {
    const auto predicted = cluster::load_account(options.predicted);
    const auto measured = cluster::load_account(options.measured);
    if (predicted.measured && !measured.measured) {
      throw ConfigError(
          fmt::format("{0} is a {1} and {2} a {3}: the prediction comes first; write: trireme diff {2} {0}",
                      options.predicted, predicted.kind, options.measured, measured.kind));
    }
    return cluster::compare(predicted, measured);
  }
  auto own = cluster::own_prediction(options.predicted);
  if (!own) {
    throw ConfigError(fmt::format("{} holds no prediction of itself; write: trireme diff predicted.json run.json",
                                  options.predicted));
  }
  return cluster::compare(*own, cluster::load_account(options.predicted));
}

void diff(const DiffOptions& options) {
  const auto difference = difference_of(options);
  if (options.json) {
    fmt::print("{}\n", cluster::to_json(difference).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", cluster::to_text(difference, standard_output().width));
  }
}

}  // namespace

void add_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "Where a prediction and a run differ, and by what");
  command
      ->add_option("predicted", options->predicted,
                   "predicted.json of simulate, plan.json of plan, or a run.json (alone: with its own prediction)")
      ->required();
  command->add_option("measured", options->measured, "run.json of train; trace.json beside it is read too");
  command->add_flag("--json", options->json, "One object");
  command->callback([options] { diff(*options); });
}

}  // namespace trireme::cli

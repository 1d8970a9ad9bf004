// plan.json: the settings of a training run that a search chose, what it predicts of that run, and what came next.
// `trireme plan -o` writes it, `trireme train --plan` runs it, `trireme diff` compares it with what happened.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/planner/option.h"

namespace trireme::cluster {

// Milliseconds of a mean step, in the words of run.json's breakdown_ms.
struct PredictedStep {
  double step_ms = 0;
  double forward_ms = 0, backward_ms = 0, communication_ms = 0, exposed_ms = 0, optimizer_ms = 0, other_ms = 0;
};

struct PlanFile {
  std::string file;                     // where it was read from
  std::string objective;                // step, accuracy or cost
  std::string model, profile, cluster;  // what was asked about: names and files
  Option chosen;                        // its settings are what train runs
  std::string prediction;               // of the chosen one, as the JSON of predicted.json
  std::vector<Option> alternatives;     // best first
  // Of `prediction`; there after reading.
  PredictedStep predicted;
};

// Strict: DataError "file:line: key: what was expected" for whatever is missing, unknown or of another type.
PlanFile load_plan(const std::string& path);
PlanFile parse_plan(std::string_view json, const std::string& file);

std::string to_json(const PlanFile& plan);
nlohmann::ordered_json to_json(const Option& option);
// There whole or not at all. Throws Error naming the file and the reason.
void save_plan(const PlanFile& plan, const std::string& path);

}  // namespace trireme::cluster

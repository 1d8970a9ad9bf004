// Where a prediction and what happened differ, by class.
//
// Compute, coding and what else a worker does by itself compare directly. Of the exchange only what was exposed made
// the step longer; each side's is shared out over latency, bandwidth, queueing, waiting and coding in proportion to
// what its exchanges are made of. So the classes' differences add up to the step's.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/cluster/diff/step_account.h"

namespace trireme::cluster {

struct Difference {
  struct Class {
    std::string_view name;  // compute, latency, bandwidth, queueing, waiting, coding, other
    std::string_view what;  // one line
    double predicted_ms = 0, measured_ms = 0;
    double ms() const { return measured_ms - predicted_ms; }
  };
  std::vector<Class> classes;
  double predicted_ms = 0, measured_ms = 0;  // the step
  std::string verdict;                       // one line that names the largest
  std::vector<std::string> notes;            // what could not be told, or is not of the same job
  double ms() const { return measured_ms - predicted_ms; }
};
Difference compare(const StepAccount& predicted, const StepAccount& measured);

// A table of at most `width` columns, the verdict, the notes.
std::string to_text(const Difference& difference, int width);
nlohmann::ordered_json to_json(const Difference& difference);

}  // namespace trireme::cluster

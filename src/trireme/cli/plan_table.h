// What a search of plans found, for people and for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trireme/cluster/planner/search.h"

namespace trireme::cli {

// A row for each option, how it is run and why it is as it is below; then what was left out. `width` columns.
std::string plan_table(const cluster::Found& found, cluster::Objective objective, int width);
nlohmann::ordered_json plan_json(const cluster::Found& found, cluster::Objective objective);

// "allreduce, fp16; ring, cap:25, 2 lanes", from the settings.
std::string how_text(const cluster::Option& option);

}  // namespace trireme::cli

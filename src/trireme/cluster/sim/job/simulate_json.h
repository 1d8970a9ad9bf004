#pragma once
#include <nlohmann/json_fwd.hpp>

#include "trireme/cluster/sim/job/simulate.h"

namespace trireme::cluster {

// predicted.json: the keys of run.json's summary where they mean the same.
nlohmann::json to_json(const Simulated& simulated);

}  // namespace trireme::cluster

// What moving and reducing bytes costs, as JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "trireme/collective/cost/corrections.h"
#include "trireme/collective/cost/link_model.h"

namespace trireme {

struct CorrectionsJson {
  static nlohmann::json of(const Corrections& corrections);
  // Throws DataError that names what is wrong.
  static Corrections read(const nlohmann::json& json);
};

nlohmann::json to_json(const LinkModel& model);
// Throws DataError naming the key that is missing, unknown, negative, not a number, or out of order.
LinkModel link_model_from_json(const nlohmann::json& json);

}  // namespace trireme

#pragma once
#include <nlohmann/json_fwd.hpp>

#include "trireme/cluster/profile/profile.h"

namespace trireme::cluster {

// As parse_profile reads it.
nlohmann::ordered_json to_json(const Profile& profile);

}  // namespace trireme::cluster

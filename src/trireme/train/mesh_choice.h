// Which mesh a run is on.
#pragma once
#include "trireme/plan/mesh_shape.h"
#include "trireme/train/config.h"

namespace trireme::train {

// As --mesh says, or one replica per worker. Throws ConfigError where it is not of so many workers.
plan::MeshShape mesh_of(const Config& config, int workers);

}  // namespace trireme::train

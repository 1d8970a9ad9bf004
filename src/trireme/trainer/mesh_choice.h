// Which mesh a run is on: the one it was told, or the fastest that fits.
#pragma once
#include <optional>
#include <string>

#include "trireme/collective/run/communicator.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

struct ChosenMesh {
  mesh::MeshShape shape;
  Config config;                      // with what was left open decided: mesh, recompute, and the batch of a replica
  std::string why;                    // one line for the user; empty where he said it all
  std::optional<double> step_s = {};  // predicted, at the first worker
  std::string why_not = {};           // or why that cannot be
};
// With --mesh auto the global batch is --batch times the workers, whatever the mesh. Throws ConfigError where the mesh
// is not of so many workers, or nothing fits: then it says what is missing and what would fit. Collective.
ChosenMesh choose_mesh(const Config& config, Workload& work, Communicator& world);

}  // namespace trireme::train

#include "trireme/train/mesh_choice.h"

#include <fmt/format.h>

#include "trireme/base/error.h"

namespace trireme::train {

plan::MeshShape mesh_of(const Config& config, int workers) {
  if (config.mesh.empty()) return {.data = workers};
  const auto shape = plan::parse_mesh(config.mesh);
  if (shape.size() != workers) {
    throw ConfigError(
        fmt::format("--mesh {}: that is {} workers, and there are {}; make data × pipe × tensor {} or "
                    "change --workers",
                    config.mesh, shape.size(), workers, workers));
  }
  return shape;
}

}  // namespace trireme::train

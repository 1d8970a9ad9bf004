// The workers as a grid of data × pipe × tensor, with a communicator along each axis through this worker.
#pragma once
#include <optional>

#include "trireme/collective/run/communicator.h"
#include "trireme/mesh/mesh_shape.h"

namespace trireme {

using mesh::MeshPlace;
using mesh::MeshShape;

class Mesh {
 public:
  // Collective over `world`, which must outlive it. Throws ConfigError where the shape does not have its size.
  Mesh(Communicator& world, const MeshShape& shape);

  const MeshShape& shape() const { return shape_; }
  const MeshPlace& place() const { return place_; }
  Communicator& world() { return world_; }
  Communicator& data() { return *data_; }      // the same part of the model, other samples
  Communicator& pipe() { return *pipe_; }      // the other stages of this replica; its rank is the stage
  Communicator& tensor() { return *tensor_; }  // the other parts of this stage's layers
  // All workers of this replica of the model, stages and parts.
  Communicator& replica() { return *replica_; }

 private:
  Communicator& world_;
  const MeshShape shape_;
  const MeshPlace place_;
  std::optional<Communicator> data_, pipe_, tensor_, replica_;
};

}  // namespace trireme

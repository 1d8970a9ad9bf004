#include "trireme/parallel/mesh.h"

#include <fmt/format.h>

#include "trireme/base/error.h"

namespace trireme {
namespace {

const MeshShape& checked(const MeshShape& shape, int ranks) {
  if (shape.size() != ranks) {
    throw ConfigError(
        fmt::format("mesh {} is of {} workers, and there are {}", mesh::to_text(shape), shape.size(), ranks));
  }
  return shape;
}

}  // namespace

Mesh::Mesh(Communicator& world, const MeshShape& shape)
    : world_(world), shape_(checked(shape, world.size())), place_(mesh::place_of(shape, world.rank())) {
  auto others = [&](MeshPlace at, auto axis) {
    at.*axis = 0;
    return mesh::rank_of(shape_, at);
  };
  data_ = world.split(others(place_, &MeshPlace::data));
  pipe_ = world.split(others(place_, &MeshPlace::pipe));
  tensor_ = world.split(others(place_, &MeshPlace::tensor));
  replica_ = world.split(place_.data);
}

}  // namespace trireme

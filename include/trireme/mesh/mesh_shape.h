// How many workers there are along each axis: replicas of the model, stages of it, parts of a layer.
#pragma once
#include <string>
#include <string_view>

namespace trireme::mesh {

struct MeshShape {
  int data = 1, pipe = 1, tensor = 1;
  int size() const { return data * pipe * tensor; }
  bool operator==(const MeshShape&) const = default;
};

// "data=2,pipe=2,tensor=1"; an axis that is not named is 1. Throws ConfigError that says what was expected.
MeshShape parse_mesh(std::string_view text);

// That `trireme train` takes, and so a search of plans.
inline constexpr int kMostTrainedWorkers = 4096;

// Of a step with stages, where nobody says how many.
inline constexpr int kMicroBatches = 8;
std::string to_text(const MeshShape& shape);

// Where a rank is: the parts of a layer are neighbours, then the stages, then the replicas.
struct MeshPlace {
  int data = 0, pipe = 0, tensor = 0;
  bool operator==(const MeshPlace&) const = default;
};
MeshPlace place_of(const MeshShape& shape, int rank);
int rank_of(const MeshShape& shape, const MeshPlace& place);

}  // namespace trireme::mesh

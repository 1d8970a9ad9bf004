#include "trireme/mesh/mesh_shape.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"

namespace trireme::mesh {

MeshShape parse_mesh(std::string_view text) {
  constexpr int kMost = 1 << 20;
  MeshShape shape;
  bool seen[3] = {};
  while (!text.empty()) {
    auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    auto equals = item.find('=');
    auto axis = item.substr(0, equals);
    int which = axis == "data" ? 0 : axis == "pipe" ? 1 : axis == "tensor" ? 2 : -1;
    if (which < 0 || equals == std::string_view::npos || seen[which]) {
      throw ConfigError(fmt::format("--mesh: '{}' is no size of an axis, each given once: data=N, pipe=N and tensor=N",
                                    clipped(item)));
    }
    seen[which] = true;
    int size = static_cast<int>(parse_integer(item.substr(equals + 1), fmt::format("--mesh {}", axis), 1, kMost));
    (which == 0 ? shape.data : which == 1 ? shape.pipe : shape.tensor) = size;
  }
  if (static_cast<long>(shape.data) * shape.pipe > kMost ||
      static_cast<long>(shape.data) * shape.pipe * shape.tensor > kMost) {
    throw ConfigError(fmt::format("--mesh: more than {} workers", kMost));
  }
  return shape;
}

std::string to_text(const MeshShape& shape) {
  return fmt::format("data={},pipe={},tensor={}", shape.data, shape.pipe, shape.tensor);
}

MeshPlace place_of(const MeshShape& shape, int rank) {
  return {rank / shape.tensor / shape.pipe, rank / shape.tensor % shape.pipe, rank % shape.tensor};
}

int rank_of(const MeshShape& shape, const MeshPlace& place) {
  return (place.data * shape.pipe + place.pipe) * shape.tensor + place.tensor;
}

}  // namespace trireme::mesh

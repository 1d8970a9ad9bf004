// How a tensor is cut into parts, one for each rank of a group.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace trireme::parallel {

struct Cut {
  std::int64_t dim = 0;
  // The dimension is so many equal groups one after the other (query, key, value), and each is cut alike.
  std::int64_t groups = 1;
  // Of each rank's part, along the dimension and within one group. They add up to the group.
  std::vector<std::int64_t> sizes;

  int parts() const { return static_cast<int>(sizes.size()); }
  std::int64_t whole() const;          // the size of the dimension before it was cut
  std::int64_t begin(int part) const;  // of the part within a group
  bool operator==(const Cut&) const = default;
};

struct Range {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

// As equal as can be: the first parts are larger by one.
std::vector<std::int64_t> even_sizes(std::int64_t count, int parts);

// The part of a whole tensor, contiguous, with memory of its own. Throws ConfigError where the cut does not fit it.
torch::Tensor local_of(const torch::Tensor& whole, const Cut& cut, int part);
// The whole from all parts in order: the inverse.
torch::Tensor assemble(const std::vector<torch::Tensor>& parts, const Cut& cut);

}  // namespace trireme::parallel

#include "trireme/parallel/tensor/cut.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "trireme/base/error.h"

namespace trireme::parallel {
namespace {

// The dimension as groups × what is cut.
torch::Tensor grouped(const torch::Tensor& tensor, const Cut& cut) {
  auto shape = tensor.sizes().vec();
  shape[cut.dim] /= cut.groups;
  shape.insert(shape.begin() + cut.dim, cut.groups);
  return tensor.reshape(shape);
}

void check(const torch::Tensor& tensor, const Cut& cut, std::int64_t size) {
  if (cut.dim >= 0 && cut.dim < tensor.dim() && tensor.size(cut.dim) == size) return;
  throw ConfigError(fmt::format("a tensor of [{}] is not one with {} along dimension {}",
                                fmt::join(tensor.sizes().vec(), ", "), size, cut.dim));
}

}  // namespace

std::int64_t Cut::whole() const { return groups * std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

std::int64_t Cut::begin(int part) const {
  return std::accumulate(sizes.begin(), sizes.begin() + part, std::int64_t{0});
}

std::vector<std::int64_t> even_sizes(std::int64_t count, int parts) {
  std::vector<std::int64_t> sizes(parts, count / parts);
  for (int part = 0; part < count % parts; ++part) ++sizes[part];
  return sizes;
}

torch::Tensor local_of(const torch::Tensor& whole, const Cut& cut, int part) {
  check(whole, cut, cut.whole());
  auto own = grouped(whole, cut).narrow(cut.dim + 1, cut.begin(part), cut.sizes.at(part));
  return own.flatten(cut.dim, cut.dim + 1).clone(torch::MemoryFormat::Contiguous);
}

torch::Tensor assemble(const std::vector<torch::Tensor>& parts, const Cut& cut) {
  if (parts.size() != cut.sizes.size()) {
    throw ConfigError(fmt::format("{} parts of a tensor that is cut into {}", parts.size(), cut.sizes.size()));
  }
  std::vector<torch::Tensor> all;
  for (int part = 0; part < cut.parts(); ++part) {
    check(parts[part], cut, cut.groups * cut.sizes[part]);
    all.push_back(grouped(parts[part], cut));
  }
  return torch::cat(all, cut.dim + 1).flatten(cut.dim, cut.dim + 1);
}

}  // namespace trireme::parallel

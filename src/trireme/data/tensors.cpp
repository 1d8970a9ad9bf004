#include "trireme/data/dataset.h"

#include <fmt/format.h>

#include "trireme/base/error.h"

namespace trireme::data {
namespace {

class Tensors final : public Dataset {
 public:
  Tensors(const torch::Tensor& input, const torch::Tensor& target, std::int64_t classes, std::int64_t values)
      : input_(input.contiguous()), target_(target.contiguous()) {
    shape_ = {input_.sizes().slice(1).vec(), classes, false, values};
  }
  std::int64_t size() const override { return input_.size(0); }
  const Shape& shape() const override { return shape_; }
  Batch get(std::span<const std::int64_t> indices) const override {
    const auto rows = torch::tensor(torch::ArrayRef<std::int64_t>(indices.data(), indices.size()), torch::kInt64);
    return {input_.index_select(0, rows), target_.index_select(0, rows)};
  }

 private:
  const torch::Tensor input_, target_;
  Shape shape_;
};

void check_input(const torch::Tensor& input) {
  if (input.dim() >= 2 && input.scalar_type() == torch::kFloat32) return;
  throw DataError("of_tensors: the input is not f32 [samples, …]");
}

}  // namespace

std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target, std::int64_t classes) {
  check_input(input);
  if (target.dim() != 1 || target.scalar_type() != torch::kInt64 || target.size(0) != input.size(0)) {
    throw DataError(fmt::format("of_tensors: the target is not i64 [{}], a class for each sample", input.size(0)));
  }
  if (target.numel() > 0 && (target.min().item<std::int64_t>() < 0 || target.max().item<std::int64_t>() >= classes)) {
    throw DataError(fmt::format("of_tensors: a class is not from 0 to {}", classes - 1));
  }
  return std::make_shared<Tensors>(input, target, classes, 0);
}

std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target) {
  check_input(input);
  if (target.dim() != 2 || target.scalar_type() != torch::kFloat32 || target.size(0) != input.size(0)) {
    throw DataError(fmt::format("of_tensors: the target is not f32 [{}, k], numbers for each sample", input.size(0)));
  }
  return std::make_shared<Tensors>(input, target, 0, target.size(1));
}

}  // namespace trireme::data

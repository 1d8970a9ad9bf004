#include "trireme/train/optimizers/per_parameter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <map>

#include "trireme/base/error.h"
#include "trireme/train/optimizers/kernels.h"

namespace trireme::train {
namespace {

bool dense_f32(const torch::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat && tensor.layout() == torch::kStrided &&
         tensor.is_non_overlapping_and_dense();
}

template <class Float>
double square_of_blocks(const Float* x, std::int64_t n) {
  constexpr auto kBlock = static_cast<std::int64_t>(kernels::kBlock);
  std::vector<double> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  in_parallel(static_cast<std::int64_t>(sums.size()), kGrain / kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      std::int64_t start = block * kBlock;
      auto count = static_cast<std::size_t>(std::min(kBlock, n - start));
      sums[static_cast<std::size_t>(block)] = kernels::block_square(x + start, count);
    }
  });
  return kernels::tree_sum(sums);
}

}  // namespace

double square_of(const float* x, std::int64_t n) { return square_of_blocks(x, n); }

torch::Tensor square_of(const torch::Tensor& tensor) {
  auto wide = tensor.to(torch::kDouble).contiguous();
  if (!wide.device().is_cpu()) return wide.square().sum();
  return torch::scalar_tensor(square_of_blocks(wide.data_ptr<double>(), wide.numel()), torch::kDouble);
}

Norms norms_of(const OptimizerOptions& options, const std::string& parameter, double first, double second) {
  std::array squares{first, second};
  if (options.over_parts) options.over_parts(parameter, squares);
  return {std::sqrt(squares[0]), std::sqrt(squares[1])};
}

NormTensors norms_of(const OptimizerOptions& options, const std::string& parameter, const torch::Tensor& first,
                     const torch::Tensor& second) {
  auto squares = torch::stack({square_of(first), square_of(second)});
  if (options.over_parts) {
    auto here = squares.to(torch::kCPU);
    options.over_parts(parameter, {here.data_ptr<double>(), 2});
    squares.copy_(here);
  }
  squares.sqrt_();
  return {squares[0], squares[1]};
}

PerParameter::PerParameter(const NamedTensors& parameters, std::initializer_list<std::string> quantities, bool counted)
    : quantities_(quantities) {
  torch::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters) {
    Slot slot{name, parameter, {}, {}};
    for (std::size_t i = 0; i < quantities_.size(); ++i) slot.quantities.push_back(torch::zeros_like(parameter));
    if (counted) slot.steps = torch::zeros({}, torch::kLong);
    slots_.push_back(std::move(slot));
  }
}

void PerParameter::step(double lr) {
  torch::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    torch::Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.layout() != torch::kStrided) gradient = gradient.to_dense();
    std::int64_t steps = slot.steps.defined() ? ++*slot.steps.data_ptr<std::int64_t>() : 0;

    auto alike = [&](const torch::Tensor& other) {
      return dense_f32(other) && other.strides() == slot.parameter.strides();
    };
    if (!alike(slot.parameter) || !alike(gradient) || !std::ranges::all_of(slot.quantities, alike)) {
      plain(slot, gradient, steps, lr);
      continue;
    }
    auto quantity = [&](std::size_t i) {
      return i < slot.quantities.size() ? slot.quantities[i].data_ptr<float>() : nullptr;
    };
    fused(slot,
          {slot.parameter.data_ptr<float>(), gradient.data_ptr<float>(), quantity(0), quantity(1),
           slot.parameter.numel()},
          steps, lr);
    // Autograd must know that the weights are others now.
    slot.parameter.unsafeGetTensorImpl()->bump_version();
  }
}

NamedTensors PerParameter::state() {
  NamedTensors state;
  for (Slot& slot : slots_) {
    for (std::size_t i = 0; i < quantities_.size(); ++i) {
      state.emplace_back(slot.name + "." + quantities_[i], slot.quantities[i]);
    }
    if (slot.steps.defined()) state.emplace_back(slot.name + ".step", slot.steps);
  }
  return state;
}

void PerParameter::load(const NamedTensors& saved) {
  torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> given(saved.begin(), saved.end());
  NamedTensors own = state();
  for (const auto& [name, tensor] : own) {
    auto found = given.find(name);
    if (found == given.end()) throw DataError(fmt::format("optimizer state: {} is missing", name));
    const torch::Tensor& other = found->second;
    if (other.sizes() != tensor.sizes() || other.scalar_type() != tensor.scalar_type()) {
      auto text = [](const torch::Tensor& t) {
        return fmt::format("{} [{}]", c10::toString(t.scalar_type()), fmt::join(t.sizes().vec(), ", "));
      };
      throw DataError(fmt::format("optimizer state: {} is {}, must be {}", name, text(other), text(tensor)));
    }
  }
  if (given.size() > own.size()) {
    for (const auto& [name, tensor] : own) given.erase(name);
    throw DataError(fmt::format("optimizer state: {} belongs to no parameter of this optimizer", given.begin()->first));
  }
  for (auto& [name, tensor] : own) tensor.copy_(given.at(name));
}

}  // namespace trireme::train

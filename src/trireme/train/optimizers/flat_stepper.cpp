#include "trireme/train/optimizers/flat_stepper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "trireme/base/error.h"
#include "trireme/optim/whole_tensor.h"

namespace trireme::train {
namespace {

bool dense_f32(const torch::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat && tensor.layout() == torch::kStrided &&
         tensor.is_non_overlapping_and_dense();
}

}  // namespace

FlatStepper::FlatStepper(const optim::OptimizerKind& kind, const NamedTensors& parameters,
                         const OptimizerOptions& options)
    : name_(kind.name), options_(options), rule_(optim::make_rule(kind, options)), operations_(operations_of(kind)) {
  torch::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters) {
    Slot slot{name, parameter, {}, {}};
    for (const auto& quantity : rule_->quantities()) slot.kept.push_back(torch::full_like(parameter, quantity.first));
    if (rule_->counted()) slot.steps = torch::zeros({}, torch::kLong);
    slots_.push_back(std::move(slot));
  }
}

void FlatStepper::step(double lr) {
  torch::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    torch::Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.layout() != torch::kStrided) gradient = gradient.to_dense();
    const std::int64_t step = slot.steps.defined() ? ++*slot.steps.data_ptr<std::int64_t>() : 1;
    rule_->begin(lr, static_cast<std::uint64_t>(step));

    auto alike = [&](const torch::Tensor& other) {
      return dense_f32(other) && other.strides() == slot.parameter.strides();
    };
    if (alike(slot.parameter) && alike(gradient) && std::ranges::all_of(slot.kept, alike)) {
      in_place(slot, gradient);
    } else if (operations_) {
      operations_({options_, slot.name, slot.parameter, gradient, slot.kept, lr, step, options_.over_parts});
    } else {
      in_copies(slot, gradient);
    }
  }
}

void FlatStepper::in_place(Slot& slot, const torch::Tensor& gradient) {
  run(slot, slot.parameter.data_ptr<float>(), gradient.data_ptr<float>(), slot.kept);
  // Autograd must know that the weights are others now.
  slot.parameter.unsafeGetTensorImpl()->bump_version();
}

void FlatStepper::in_copies(Slot& slot, const torch::Tensor& gradient) {
  if (slot.parameter.scalar_type() == torch::kDouble) {
    throw ConfigError(fmt::format("optimizer {}: it steps f32, and {} is f64", name_, slot.name));
  }
  auto copy = [](const torch::Tensor& from) { return torch::empty(from.sizes(), torch::kFloat).copy_(from); };
  auto weights = copy(slot.parameter);
  std::vector<torch::Tensor> kept;
  for (const auto& one : slot.kept) kept.push_back(copy(one));
  run(slot, weights.data_ptr<float>(), copy(gradient).data_ptr<float>(), kept);
  slot.parameter.copy_(weights);
  for (std::size_t k = 0; k < kept.size(); ++k) slot.kept[k].copy_(kept[k]);
}

void FlatStepper::run(Slot& slot, float* weights, const float* gradient, const std::vector<torch::Tensor>& kept) {
  optim::Piece all{.w = weights, .g = gradient, .kept = {}, .n = static_cast<std::size_t>(slot.parameter.numel())};
  for (std::size_t k = 0; k < kept.size(); ++k) all.kept[k] = kept[k].data_ptr<float>();
  optim::step_tensor(
      *rule_, all, slot.parameter.dim() > 1,
      [](std::int64_t n, std::int64_t grain, const auto& f) { at::parallel_for(0, n, grain, f); },
      [&](std::span<double> squares) {
        if (options_.over_parts) options_.over_parts(slot.name, squares);
      });
}

NamedTensors FlatStepper::state() {
  NamedTensors state;
  for (Slot& slot : slots_) {
    for (std::size_t k = 0; k < slot.kept.size(); ++k) {
      state.emplace_back(fmt::format("{}.{}", slot.name, rule_->quantities()[k].name), slot.kept[k]);
    }
    if (slot.steps.defined()) state.emplace_back(slot.name + ".step", slot.steps);
  }
  return state;
}

void FlatStepper::load(const NamedTensors& saved) {
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

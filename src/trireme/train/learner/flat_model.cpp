#include "trireme/train/learner/flat_model.h"

#include <fmt/format.h>

#include <cstring>

#include "trireme/base/error.h"
#include "trireme/grad/parameters.h"

namespace trireme::train {
namespace {

torch::Tensor view_at(float* memory, const torch::Tensor& like) {
  return torch::from_blob(memory, like.sizes(), torch::TensorOptions(torch::kFloat32));
}

}  // namespace

FlatModel::FlatModel(torch::nn::Module& model, Communicator& comm, sync::Strategy& strategy) {
  for (const auto& [name, parameter] : grad::learning(model)) count_ += static_cast<std::size_t>(parameter.numel());
  weights_ = strategy.weights_memory(count_);
  if (!weights_) weights_ = comm.allocate<float>(count_);
  if (strategy.traits().uses_gradient) {
    gradient_ = strategy.gradient_memory(count_);
    if (!gradient_) gradient_ = comm.allocate<float>(count_);
  }
  torch::NoGradGuard no_grad;
  std::size_t at = 0;
  for (const auto& [name, parameter] : grad::learning(model)) {
    if (parameter.scalar_type() != torch::kFloat32) {
      throw ConfigError(
          fmt::format("parameter '{}' is not of 32-bit floats: only --strategy allreduce takes such models", name));
    }
    Member member{parameter, view_at(weights_.get() + at, parameter),
                  gradient_ ? view_at(gradient_.get() + at, parameter) : torch::Tensor()};
    member.weights.copy_(parameter);
    on_host_ = parameter.is_cpu();
    at += static_cast<std::size_t>(parameter.numel());
    members_.push_back(std::move(member));
  }
  if (on_host_) point_at(weights_.get());
}

FlatModel::~FlatModel() {
  torch::NoGradGuard no_grad;
  for (auto& member : members_) {
    member.parameter.mutable_grad() = torch::Tensor();
    if (on_host_) member.parameter.set_data(member.parameter.detach().clone());
  }
}

void FlatModel::point_at(float* memory) {
  std::size_t at = 0;
  for (auto& member : members_) {
    member.parameter.set_data(view_at(memory + at, member.parameter));
    at += static_cast<std::size_t>(member.parameter.numel());
  }
}

std::vector<ps::Tensor> FlatModel::outline(torch::nn::Module& model) {
  std::vector<ps::Tensor> tensors;
  for (const auto& [name, parameter] : grad::learning(model)) {
    auto rows = parameter.dim() > 0 ? parameter.size(0) : 1;
    tensors.push_back({name, static_cast<std::uint64_t>(parameter.numel()), static_cast<std::uint64_t>(rows)});
  }
  return tensors;
}

sync::Replica FlatModel::replica() {
  return {{weights_.get(), count_}, gradient_ ? std::span<float>(gradient_.get(), count_) : std::span<float>()};
}

void FlatModel::clear_gradients() { std::memset(gradient_.get(), 0, count_ * sizeof(float)); }

void FlatModel::download() {
  if (on_host_) return;
  torch::NoGradGuard no_grad;
  for (auto& member : members_) member.weights.copy_(member.parameter);
}

void FlatModel::upload() {
  if (on_host_) return;
  torch::NoGradGuard no_grad;
  for (auto& member : members_) {
    member.parameter.copy_(member.weights);
    if (gradient_ && member.parameter.grad().defined()) member.parameter.mutable_grad().copy_(member.gradient);
  }
}

FlatModel::Instead::Instead(FlatModel& flat, std::span<float> values) : flat_(flat) {
  torch::NoGradGuard no_grad;
  if (flat_.on_host_) {
    flat_.point_at(values.data());
    return;
  }
  std::size_t at = 0;
  for (auto& member : flat_.members_) {
    member.parameter.copy_(view_at(values.data() + at, member.parameter));
    at += static_cast<std::size_t>(member.parameter.numel());
  }
}

FlatModel::Instead::~Instead() {
  torch::NoGradGuard no_grad;
  if (flat_.on_host_) {
    flat_.point_at(flat_.weights_.get());
  } else {
    flat_.upload();
  }
}

}  // namespace trireme::train

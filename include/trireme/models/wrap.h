// Any module with `torch::Tensor forward(torch::Tensor)` as a model of the zoo.
#pragma once
#include <memory>
#include <utility>

#include "trireme/models/model.h"

namespace trireme::models {

// Has the module's parameters, buffers and children under their own names, so that checkpoints are the same as without
// it. The model is one piece, and cannot be cut: for meshes write a ChainModel, or take a Sequential.
template <typename Net>
class Wrapped : public Model {
 public:
  explicit Wrapped(std::shared_ptr<Net> net) : net_(std::move(net)) {
    for (const auto& item : net_->named_parameters(/*recurse=*/false)) {
      register_parameter(item.key(), item.value(), item.value().requires_grad());
    }
    for (const auto& item : net_->named_buffers(/*recurse=*/false)) register_buffer(item.key(), item.value());
    for (const auto& item : net_->named_children()) register_module(item.key(), item.value());
  }
  torch::Tensor forward(torch::Tensor input) override { return net_->forward(std::move(input)); }
  void train(bool on = true) override {
    Model::train(on);
    net_->train(on);
  }

 private:
  std::shared_ptr<Net> net_;
};

// One piece for each module of it.
template <>
class Wrapped<torch::nn::SequentialImpl> : public ChainModel {
 public:
  explicit Wrapped(const std::shared_ptr<torch::nn::SequentialImpl>& net) {
    for (const auto& item : net->named_children()) register_module(item.key(), item.value());
    add_pieces(nn::chain_of(torch::nn::Sequential(net)));
  }
};

// Of a shared pointer or one of LibTorch's module holders.
template <typename Net>
std::shared_ptr<Model> model_of(std::shared_ptr<Net> net) {
  return std::make_shared<Wrapped<Net>>(std::move(net));
}
template <typename Net>
std::shared_ptr<Model> model_of(const torch::nn::ModuleHolder<Net>& net) {
  return model_of(net.ptr());
}

}  // namespace trireme::models

// Steps tensors by an optimizer on flat memory, each parameter on its own, with tensors of its own shape as state:
// where all of them are dense f32 on the CPU in place and on LibTorch's threads, elsewhere by operations of their
// device (by_operations.h), or, by an optimizer that has none, in copies on the CPU.
#pragma once
#include <cstdint>

#include "trireme/train/optimizers/by_operations.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

class FlatStepper : public Optimizer {
 public:
  // The parameters are on their device already. Throws ConfigError for options that cannot be.
  FlatStepper(const optim::OptimizerKind& kind, const NamedTensors& parameters, const OptimizerOptions& options);

  void step(double lr) override;
  NamedTensors state() override;
  void load(const NamedTensors& state) override;

 private:
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    std::vector<torch::Tensor> kept;  // as the rule's quantities
    torch::Tensor steps;              // one int64 on the CPU, the steps of this parameter; undefined if uncounted
  };
  void in_place(Slot& slot, const torch::Tensor& gradient);
  void in_copies(Slot& slot, const torch::Tensor& gradient);
  void run(Slot& slot, float* weights, const float* gradient, const std::vector<torch::Tensor>& kept);

  const std::string_view name_;
  const OptimizerOptions options_;
  const optim::MadeRule rule_;
  const Operations operations_;  // null: none
  std::vector<Slot> slots_;
};

}  // namespace trireme::train

// A model's weights, and its gradients, as flat memory: what a strategy works on, which knows no tensors.
#pragma once
#include <torch/torch.h>

#include <memory>
#include <span>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/ps/layout.h"
#include "trireme/sync/strategy.h"

namespace trireme::train {

// On the CPU the parameters that learn become views of the flat memory, so that nothing is ever copied; on another
// device download() and upload() carry them to and fro.
class FlatModel {
 public:
  // Where the strategy wants it, or in the heap of `comm`. Throws ConfigError naming a parameter that is not of 32-bit
  // floats.
  FlatModel(torch::nn::Module& model, Communicator& comm, sync::Strategy& strategy);
  FlatModel(const FlatModel&) = delete;
  FlatModel& operator=(const FlatModel&) = delete;
  // The parameters keep their values in memory of their own.
  ~FlatModel();

  sync::Replica replica();
  // What lies in it, in order.
  static std::vector<ps::Tensor> outline(torch::nn::Module& model);

  void clear_gradients();

  // Between the device and the flat memory; nothing to do on the CPU.
  void download();
  void upload();

  // While it lives the model has other weights: those of `values`.
  class Instead {
   public:
    Instead(FlatModel& flat, std::span<float> values);
    ~Instead();
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;

   private:
    FlatModel& flat_;
  };

 private:
  struct Member {
    torch::Tensor parameter;
    torch::Tensor weights, gradient;  // views of the flat memory
  };
  void point_at(float* memory);

  std::size_t count_ = 0;
  std::shared_ptr<float[]> weights_, gradient_;
  std::vector<Member> members_;
  bool on_host_ = true;
};

}  // namespace trireme::train

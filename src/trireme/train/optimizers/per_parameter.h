// What the optimizers share: each parameter is stepped on its own, with tensors of its own shape as state. Where the
// memory of all of them is dense f32 on the CPU a fused kernel does it, elsewhere LibTorch's operations.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

// The makers, for the table in optimizer.cpp.
using MadeOptimizer = std::unique_ptr<Optimizer>;
MadeOptimizer make_sgd(const NamedTensors& parameters, const OptimizerOptions& options);
MadeOptimizer make_adam(const NamedTensors& parameters, const OptimizerOptions& options);
MadeOptimizer make_adamw(const NamedTensors& parameters, const OptimizerOptions& options);
MadeOptimizer make_lars(const NamedTensors& parameters, const OptimizerOptions& options);
MadeOptimizer make_lamb(const NamedTensors& parameters, const OptimizerOptions& options);

class PerParameter : public Optimizer {
 public:
  void step(double lr) final;
  NamedTensors state() final;
  void load(const NamedTensors& state) final;

 protected:
  struct Slot {
    std::string name;
    torch::Tensor parameter;
    std::vector<torch::Tensor> quantities;  // zero at the start
    torch::Tensor steps;                    // one int64 on the CPU, the steps of this parameter; undefined if uncounted
  };
  // Dense f32 memory of one slot and its gradient; quantities in their order, null where there are none.
  struct Memory {
    float* p;
    const float* g;
    float* first;
    float* second;
    std::int64_t n;
  };

  // Quantities are at most two. The parameters are on their device already.
  PerParameter(const NamedTensors& parameters, std::initializer_list<std::string> quantities, bool counted);

  // One step of one parameter; `steps` counts from 1, and is 0 if uncounted.
  virtual void fused(const Slot& slot, const Memory& memory, std::int64_t steps, double lr) = 0;
  virtual void plain(Slot& slot, const torch::Tensor& gradient, std::int64_t steps, double lr) = 0;

 private:
  std::vector<std::string> quantities_;
  std::vector<Slot> slots_;
};

// f(begin, end) over [0, n) on LibTorch's threads.
template <class F>
void in_parallel(std::int64_t n, std::int64_t grain, const F& f) {
  at::parallel_for(0, n, grain, f);
}
inline constexpr std::int64_t kGrain = 32768;

// The sum of squares over all elements, as f64: independent of threads on the CPU. The first is of dense memory.
double square_of(const float* x, std::int64_t n);
torch::Tensor square_of(const torch::Tensor& tensor);  // one f64 on the tensor's device

// The norms of two tensors of one parameter, given their squares here: of all its parts, where it is cut.
struct Norms {
  double first, second;
};
Norms norms_of(const OptimizerOptions& options, const std::string& parameter, double first, double second);
struct NormTensors {
  torch::Tensor first, second;
};
NormTensors norms_of(const OptimizerOptions& options, const std::string& parameter, const torch::Tensor& first,
                     const torch::Tensor& second);

}  // namespace trireme::train

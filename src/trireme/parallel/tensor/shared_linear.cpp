#include "trireme/parallel/tensor/shared_linear.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {
namespace {

using torch::Tensor;

bool autocasts() {
  return !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU) ||
         !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCUDA);
}

// A sum over the ranks on its way. Its memory lives here; it is waited for even when what runs meanwhile throws.
class Summing {
 public:
  Summing(const Tensor& addend, Communicator& comm)
      : in_(addend.to(torch::kCPU).contiguous()), out_(torch::empty_like(in_)), device_(addend.device()) {
    work_ = comm.async().all_reduce(view_of(in_), view_of(out_));
  }
  ~Summing() {
    try {
      if (!waited_) work_.wait();
    } catch (...) {  // another error is under way
    }
  }
  Summing(const Summing&) = delete;
  Summing& operator=(const Summing&) = delete;

  Tensor wait() {
    waited_ = true;
    work_.wait();
    return out_.to(device_);
  }

 private:
  Tensor in_, out_;
  torch::Device device_;
  Work work_;
  bool waited_ = false;
};

class SharedLinear : public torch::autograd::Function<SharedLinear> {
 public:
  // Autograd takes no undefined tensors: `bias` is empty where there is none.
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, Communicator* comm) {
    context->save_for_backward({input, weight});
    context->saved_data["comm"] = reinterpret_cast<std::int64_t>(comm);
    context->saved_data["bias"] = bias.numel() > 0;
    return bias.numel() > 0 ? torch::linear(input, weight, bias) : torch::linear(input, weight);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    auto saved = context->get_saved_variables();
    const auto &input = saved[0], &weight = saved[1], &dy = gradients[0];
    auto& comm = *reinterpret_cast<Communicator*>(context->saved_data["comm"].toInt());
    std::optional<Summing> summing;
    if (context->needs_input_grad(0)) summing.emplace(torch::matmul(dy, weight), comm);
    auto rows = dy.reshape({-1, dy.size(-1)});
    Tensor dx, dw, db;
    if (context->needs_input_grad(1)) dw = torch::matmul(rows.t(), input.reshape({-1, input.size(-1)}));
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) db = rows.sum(0);
    if (summing) dx = summing->wait();
    return {dx, dw, db, Tensor()};
  }
};

}  // namespace

Tensor shared_linear(const Tensor& input, const Tensor& weight, const Tensor& bias, Communicator& comm) {
  if (input.scalar_type() == weight.scalar_type() && !autocasts()) {
    return SharedLinear::apply(input, weight, bias.defined() ? bias : torch::empty({0}, weight.options()), &comm);
  }
  auto x = copy_in(input, comm);
  return bias.defined() ? torch::linear(x, weight, bias) : torch::linear(x, weight);
}

}  // namespace trireme::parallel

#include "trireme/operators/embedding.h"

#include "trireme/operators/tensors.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::operators {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Embedding : public torch::autograd::Function<Embedding> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& indices, std::int64_t padding) {
    auto sizes = indices.sizes().vec();
    sizes.push_back(table.size(1));
    Tensor y = torch::empty(sizes);
    ops::embedding_forward(indices.numel(), table.size(1), table.size(0), data(table), indices.data_ptr<std::int64_t>(),
                           data(y));
    context->save_for_backward({indices});
    context->saved_data["rows"] = table.size(0);
    context->saved_data["padding"] = padding;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor indices = context->get_saved_variables()[0];
    const auto rows = context->saved_data["rows"].toInt(), padding = context->saved_data["padding"].toInt();
    if (torch::GradMode::is_enabled()) {
      return {torch::embedding_dense_backward(gradients[0], indices, rows, padding, false), {}, {}};
    }
    const Tensor gradient = gradients[0].contiguous();
    const auto columns = gradient.size(-1);
    Tensor dtable = torch::empty({rows, columns});
    ops::embedding_backward(indices.numel(), columns, rows, indices.data_ptr<std::int64_t>(), data(gradient),
                            data(dtable), padding);
    return {dtable, {}, {}};
  }
};

}  // namespace

bool takes_embedding(const Tensor& table, const Tensor& indices) {
  return plain_f32(table) && table.dim() == 2 && table.is_contiguous() && table.numel() > 0 && indices.defined() &&
         indices.device().is_cpu() && indices.layout() == torch::kStrided && indices.numel() > 0 &&
         (indices.scalar_type() == torch::kInt64 || indices.scalar_type() == torch::kInt32);
}

Tensor table_rows(const Tensor& table, const Tensor& indices, std::int64_t padding) {
  return Embedding::apply(table, indices.to(torch::kInt64).contiguous(), padding);
}

}  // namespace trireme::operators

// Rows of a table by their numbers, as an operator of autograd: LibTorch adds the gradient's rows to the table's one
// call at a time.
#pragma once
#include <torch/torch.h>

namespace trireme::operators {

bool takes_embedding(const torch::Tensor& table, const torch::Tensor& indices);
// The gradient of row `padding` is zero.
torch::Tensor table_rows(const torch::Tensor& table, const torch::Tensor& indices, std::int64_t padding);

}  // namespace trireme::operators

// Embeddings as tables of rows: which parameters of a model get a gradient in few of their rows.
#pragma once
#include <torch/torch.h>

#include <string>
#include <vector>

namespace trireme::train {

// Names of parameters, in their order.
struct Tables {
  std::vector<std::string> by_rows;  // embeddings: rows that a batch does not name get no gradient
  std::vector<std::string> whole;    // embeddings that the model uses elsewhere, too, as for the scores
};
// Throws ConfigError where no embedding is left to be pushed by rows (--sparse).
Tables tables_of(torch::nn::Module& model);
// "pushes of embedding.weight the rows that were touched"
std::string describe(const Tables& tables);

}  // namespace trireme::train

// Every operator and each of its implementations as a function and its gradients, over random shapes: odd sizes, one
// channel, groups, empty batches. A new algorithm of a family is in the list by being in the family's.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "tests/ops/layer_instances.h"
#include "tests/ops/pass_instances.h"

namespace trireme::ops {
namespace differences_test {

inline std::vector<Operator> operators() {
  std::vector<Operator> all;
  const auto tolerance_of = [](Accuracy accuracy) { return std::max(1e-3, 3 * tolerance(accuracy)); };
  for (const ConvAlgorithm* it : conv_algorithms()) {
    if (!it->takes({.batch = 1, .in_channels = 1, .height = 3, .width = 3, .out_channels = 1, .kernel = {3, 3}},
                   Pass::forward)) {
      continue;  // this CPU lacks its instructions
    }
    all.push_back({"convolution by " + std::string(it->name()), [it](Sizes& s) { return convolution(*it, s); },
                   tolerance_of(it->accuracy()), false, 1});
  }
  for (const MatmulAlgorithm* it : matmul_algorithms()) {
    if (!it->takes(1, 1, 1)) continue;
    all.push_back({"product by " + std::string(it->name()), [it](Sizes& s) { return product(*it, s); },
                   tolerance_of(it->accuracy()), false, 1});
  }
  for (const Activation it : kActivations)
    all.push_back({"activation " + std::string(name(it)), [it](Sizes& s) { return activation(it, s); }, 1e-2,
                   it == Activation::relu});
  for (const bool causal : {false, true}) {
    for (const float share : {0.0f, 0.4f})
      all.push_back({std::string("attention") + (causal ? ", causal" : "") + (share > 0 ? ", with dropout" : ""),
                     [=](Sizes& s) { return attention(causal, share, s); }});
  }
  all.push_back({"max pooling", [](Sizes& s) { return pooling(true, s); }, 1e-2, true});
  all.push_back({"mean pooling", [](Sizes& s) { return pooling(false, s); }, 1e-3, false, 1});
  all.push_back({"batch norm of the batch", [](Sizes& s) { return batch_norm(true, s); }});
  all.push_back({"batch norm of constants", [](Sizes& s) { return batch_norm(false, s); }});
  all.push_back({"layer norm", layer_norm});
  all.push_back({"softmax", softmax});
  all.push_back({"cross-entropy", cross_entropy});
  all.push_back({"embedding", embedding, 1e-3, false, 1});
  all.push_back({"lstm", [](Sizes& s) { return recurrent(RecurrentKind::lstm, s); }});
  all.push_back({"gru", [](Sizes& s) { return recurrent(RecurrentKind::gru, s); }});
  all.push_back({"dropout", dropped, 1e-3, false, 1});
  return all;
}

}  // namespace differences_test
}  // namespace trireme::ops

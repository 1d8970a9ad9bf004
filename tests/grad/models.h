// Small models and the ranks that train them.
#pragma once
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <mutex>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/grad/data_parallel.h"

namespace trireme::testing {

inline torch::nn::Sequential small_net(std::int64_t width = 32) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(8, width), torch::nn::Tanh(), torch::nn::Linear(width, width),
                               torch::nn::Tanh(), torch::nn::Linear(width, 4));
}

inline torch::nn::Sequential norm_net() {
  static std::mutex generator;
  std::lock_guard lock(generator);
  torch::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 6, 3).padding(1)),
                               torch::nn::BatchNorm2d(6), torch::nn::ReLU(),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 3, 3)), torch::nn::BatchNorm2d(3),
                               torch::nn::Flatten(), torch::nn::Linear(3 * 4 * 4, 5));
}

struct Examples {
  torch::Tensor x, y;
};

// The same on every rank and in the oracle: filled by a formula, not by the shared generator.
inline Examples examples(std::vector<std::int64_t> shape, std::int64_t classes) {
  std::int64_t count = 1;
  for (auto size : shape) count *= size;
  auto x = torch::sin(torch::arange(count, torch::kFloat32) * 0.7f).view(shape);
  return {x, torch::arange(shape[0]).remainder(classes)};
}

inline torch::Tensor loss_on(torch::nn::Sequential& net, const Examples& batch) {
  return torch::cross_entropy_loss(net->forward(batch.x), batch.y);
}

inline Examples part(const Examples& all, std::int64_t begin, std::int64_t end) {
  return {all.x.slice(0, begin, end), all.y.slice(0, begin, end)};
}

inline std::vector<torch::Tensor> gradients(torch::nn::Sequential& net) {
  std::vector<torch::Tensor> copies;
  for (auto& parameter : net->parameters()) {
    copies.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
  }
  return copies;
}

inline std::vector<torch::Tensor> weights(torch::nn::Sequential& net) {
  std::vector<torch::Tensor> copies;
  for (auto& parameter : net->parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

inline void expect_close(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].defined(), b[k].defined()) << what << ", tensor " << k;
    if (!a[k].defined()) continue;
    EXPECT_LT((a[k] - b[k]).abs().max().item<double>(), tolerance) << what << ", tensor " << k;
  }
}

}  // namespace trireme::testing

// A model whole and split over ranks that are threads, from the same weights.
#pragma once
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/parallel/tensor/tensor_collectives.h"
#include "trireme/parallel/tensor/tensor_parallel.h"

namespace trireme::parallel::split_test {

inline void expect_close(const torch::Tensor& found, const torch::Tensor& expected, const std::string& what,
                         double relative = 1e-4) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  double scale = expected.numel() == 0 ? 0 : expected.abs().max().item<double>();
  double error = expected.numel() == 0 ? 0 : (found - expected).abs().max().item<double>();
  EXPECT_LE(error, relative * scale + 1e-6) << what << " of size " << scale;
}

// The default generator belongs to all threads: models are made one after the other, before there are any.
template <class Make>
auto make_equal(Make make, int count) {
  std::vector<decltype(make())> models;
  for (int k = 0; k < count; ++k) {
    torch::manual_seed(7);
    models.push_back(make());
  }
  return models;
}

// The part of every parameter, gradient or buffer of a whole model that a rank has.
inline torch::Tensor part_of(const TensorParallel& split, const std::string& name, const torch::Tensor& whole) {
  auto cut = split.cuts().find(name);
  return cut == split.cuts().end() ? whole : local_of(whole, cut->second, split.group().rank());
}

// Output, gradients of input and parameters, and buffers after a step in training equal those of the whole model. In
// double precision: some gradients are nothing but rounding, that of a bias before a normalization for one.
// Returns the reports of rank 0.
inline std::vector<std::string> expect_split_equals_whole(const std::function<torch::nn::Sequential()>& make, int ranks,
                                                          const std::string& rules, const torch::Tensor& example) {
  auto models = make_equal(make, ranks + 1);
  for (auto& model : models) model->to(torch::kFloat64);
  auto& whole = models.back();
  const bool differentiable = example.is_floating_point();
  const auto sample = differentiable ? example.to(torch::kFloat64) : example;
  auto input = sample.clone().set_requires_grad(differentiable);
  auto output = whole->forward(input);
  auto direction = torch::rand_like(output);
  output.backward(direction);
  std::vector<std::string> report;
  run_threads(ranks, [&](Communicator& comm) {
    auto& model = models[comm.rank()];
    auto forward = [&](torch::Tensor x) { return model->forward(x); };
    TensorParallel split(*model, forward, comm, rules, sample);
    if (comm.rank() == 0) report = split.report();
    auto own = sample.clone().set_requires_grad(differentiable);
    auto found = split.whole(model->forward(own));
    auto at = rules + " rank " + std::to_string(comm.rank()) + "/" + std::to_string(ranks) + " ";
    expect_close(found, output, at + "output");
    found.backward(direction);
    if (differentiable) expect_close(own.grad(), input.grad(), at + "input gradient");
    for (const auto& item : whole->named_parameters()) {
      auto parameter = model->named_parameters()[item.key()];
      expect_close(parameter, part_of(split, item.key(), item.value()), at + item.key());
      expect_close(parameter.grad(), part_of(split, item.key(), item.value().grad()), at + item.key() + " gradient");
    }
    for (const auto& item : whole->named_buffers()) {
      expect_close(model->named_buffers()[item.key()].to(torch::kFloat64),
                   part_of(split, item.key(), item.value()).to(torch::kFloat64), at + item.key());
    }
  });
  return report;
}

}  // namespace trireme::parallel::split_test

// Each kind of layer in a module of a user's own, optimized, against the same module left to LibTorch: outputs,
// gradients of inputs and parameters, steps of training, gradients of gradients; and which calls are ours at all.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/operators/layer_cases.h"
#include "trireme/operators/optimize.h"

namespace trireme::operators {
namespace layers_test {

constexpr Settings kAll{.least_flops = 0};

Example made(const LayerCase& it, unsigned seed) {
  torch::manual_seed(seed);
  Sizes sizes(seed);
  return it.make(sizes);
}

// Whether the name of a node of x's graph has these letters in it.
bool made_by(const Tensor& x, const std::string& letters) {
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> left{x.grad_fn().get()};
  while (!left.empty()) {
    auto* node = left.back();
    left.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (node->name().find(letters) != std::string::npos) return true;
    for (const auto& edge : node->next_edges()) left.push_back(edge.function.get());
  }
  return false;
}

variable_list leaves(const variable_list& inputs) {
  variable_list all;
  for (const auto& x : inputs) {
    all.push_back(x.is_floating_point() ? x.detach().clone().requires_grad_() : x);
  }
  return all;
}

void expect_close(const Tensor& ours, const Tensor& theirs, const std::string& what, double tolerance = 2e-5) {
  ASSERT_EQ(ours.defined(), theirs.defined()) << what;
  if (!ours.defined()) return;
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const auto apart = (ours - theirs).norm().item<double>();
  EXPECT_LE(apart, tolerance * (theirs.norm().item<double>() + 0.1 * std::sqrt(static_cast<double>(theirs.numel()))))
      << what;
}

void expect_same_gradients(const Net& ours, const Net& theirs, const variable_list& x, const variable_list& in,
                           double tolerance = 2e-5) {
  for (std::size_t k = 0; k < x.size(); ++k)
    expect_close(x[k].grad(), in[k].grad(), "input " + std::to_string(k), tolerance);
  for (const auto& item : theirs.named_parameters()) {
    expect_close(ours.named_parameters()[item.key()].grad(), item.value().grad(), item.key(), tolerance);
  }
}

Tensor loss_of(const Tensor& y) {  // no gradient like another, none contiguous
  return (y * torch::linspace(-1, 1, y.numel() * 2).slice(0, 0, y.numel() * 2, 2).view_as(y)).sum();
}

constexpr unsigned kShapes = 6;

// Small layers, many of them: a team of threads would wait for most of the time.
class OneThread {
 public:
  OneThread() { torch::set_num_threads(1); }
  ~OneThread() { torch::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = torch::get_num_threads();
};

TEST(Layers, TrainLikeLibTorchs) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    for (unsigned seed = 1; seed <= kShapes; ++seed) {
      SCOPED_TRACE(std::string(it.name) + ", shape " + std::to_string(seed));
      auto ours = made(it, seed), theirs = made(it, seed);
      optimize(*ours.net, kAll);
      for (int step = 0; step < 4; ++step) {
        ours.net->train(step != 2);
        theirs.net->train(step != 2);
        ours.net->zero_grad();
        theirs.net->zero_grad();
        const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
        torch::manual_seed(step);
        const Tensor y = ours.net->run(x);
        optimize(*ours.net, {.operators = Operators::libtorch});  // of pooling and the like, too
        torch::manual_seed(step);
        const Tensor wanted = theirs.net->run(in);
        EXPECT_EQ(made_by(y, it.node), it.ours);
        expect_close(y, wanted, "output");
        loss_of(y).backward();
        loss_of(wanted).backward();
        expect_same_gradients(*ours.net, *theirs.net, x, in);
        torch::NoGradGuard no_grad;
        for (auto* net : {ours.net.get(), theirs.net.get()}) {
          for (auto& p : net->parameters()) {
            if (p.grad().defined()) p.sub_(p.grad(), 0.05 / (1 + p.grad().norm().item<double>()));
          }
        }
        for (const auto& item : theirs.net->named_buffers()) {
          expect_close(ours.net->named_buffers()[item.key()].to(torch::kFloat32), item.value().to(torch::kFloat32),
                       item.key());
        }
        optimize(*ours.net, kAll);
        ours.net->eval();
        theirs.net->eval();
        expect_close(ours.net->run(ours.inputs), theirs.net->run(theirs.inputs), "without gradients");
      }
    }
  }
}

// The gradient of the gradients' squares.
void penalize(Net& net, const variable_list& x) {
  variable_list wanted;
  for (const auto& t : x) {
    if (t.requires_grad()) wanted.push_back(t);
  }
  for (const auto& p : net.parameters()) wanted.push_back(p);
  const auto gradients = torch::autograd::grad({loss_of(net.run(x).sin())}, wanted, {}, true, true, true);
  Tensor sum = torch::zeros({});
  for (const auto& g : gradients) {
    if (g.defined()) sum = sum + g.pow(2).sum();
  }
  sum.backward();
}

TEST(Layers, GradientsOfGradients) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    if (!it.smooth || !it.ours) continue;
    for (unsigned seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(std::string(it.name) + ", shape " + std::to_string(seed));
      auto ours = made(it, seed), theirs = made(it, seed);
      const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
      torch::manual_seed(seed);
      penalize(*theirs.net, in);
      optimize(*ours.net, kAll);
      torch::manual_seed(seed);
      penalize(*ours.net, x);
      optimize(*ours.net, {.operators = Operators::libtorch});
      expect_same_gradients(*ours.net, *theirs.net, x, in, 2e-4);
    }
  }
}

// What is not plain f32 is LibTorch's; so are empty batches, or refused as LibTorch refuses them.
TEST(Layers, OtherTypesAndEmptyBatches) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    SCOPED_TRACE(it.name);
    auto ours = made(it, 3), theirs = made(it, 3);
    const auto compare = [&](const variable_list& inputs) {
      const auto outcome = [&](Net& net) -> Tensor {
        const auto x = leaves(inputs);
        torch::manual_seed(1);
        try {
          const Tensor y = net.run(x);
          EXPECT_FALSE(made_by(y, "trireme"));
          return y;
        } catch (const c10::Error&) {
          return {};
        }
      };
      const Tensor wanted = outcome(*theirs.net);
      optimize(*ours.net, kAll);
      const Tensor y = outcome(*ours.net);
      optimize(*ours.net, {.operators = Operators::libtorch});
      expect_close(y, wanted, "output");
    };
    variable_list empty = ours.inputs;
    for (auto& x : empty) x = x.narrow(0, 0, 0);
    compare(empty);
    ours.net->to(torch::kFloat64);
    theirs.net->to(torch::kFloat64);
    variable_list doubles = ours.inputs;
    for (auto& x : doubles) x = x.is_floating_point() ? x.to(torch::kFloat64) : x;
    compare(doubles);
  }
}

// Weights without gradients; a module that is gone before its graph; a copy that nobody optimized.
TEST(Layers, FrozenWeightsCopiesAndModulesThatAreGone) {
  const OneThread alone;
  for (const LayerCase& it : kCases) {
    SCOPED_TRACE(it.name);
    auto ours = made(it, 4), theirs = made(it, 4);
    const auto x = leaves(ours.inputs), in = leaves(theirs.inputs);
    variable_list frozen;
    for (auto& p : ours.net->parameters()) frozen.push_back(p.set_requires_grad(false));
    for (auto& p : theirs.net->parameters()) p.set_requires_grad(false);
    torch::manual_seed(4);
    const Tensor wanted = theirs.net->run(in);
    optimize(*ours.net, kAll);
    torch::manual_seed(4);
    const Tensor y = ours.net->run(x);
    optimize(*ours.net, {.operators = Operators::libtorch});
    ours.net.reset();
    expect_close(y, wanted, "output");
    ASSERT_EQ(y.requires_grad(), wanted.requires_grad());
    if (!y.requires_grad()) continue;
    loss_of(wanted).backward();
    loss_of(y).backward();
    for (std::size_t k = 0; k < x.size(); ++k) expect_close(x[k].grad(), in[k].grad(), "input " + std::to_string(k));
    for (const auto& p : frozen) EXPECT_FALSE(p.grad().defined());
  }
  nn::GRU layer(3, 5);
  optimize(*layer, kAll);
  auto copy = std::dynamic_pointer_cast<nn::GRUImpl>(layer->clone());
  const Tensor x = torch::randn({4, 2, 3});
  const Tensor y = std::get<0>(layer(x)), of_copy = std::get<0>(copy->forward(x));
  EXPECT_TRUE(made_by(y, "Recurrent"));
  EXPECT_FALSE(made_by(of_copy, "Recurrent"));
  expect_close(y, of_copy, "copy");
  optimize(*copy, kAll);
  optimize(*layer, {.operators = Operators::libtorch});
  EXPECT_FALSE(made_by(std::get<0>(layer(x)), "Recurrent"));
  EXPECT_TRUE(made_by(std::get<0>(copy->forward(x)), "Recurrent"));
}

// With dropout the numbers are ours; what is dropped is drawn from LibTorch's generator, and gradients are of what was.
TEST(Layers, AttentionWithDropout) {
  nn::MultiheadAttention layer(nn::MultiheadAttentionOptions(12, 3).dropout(0.4));
  optimize(*layer, kAll);
  const auto with_seed = [&](const Tensor& x, std::uint64_t seed) {
    torch::manual_seed(seed);
    return std::get<0>(layer->forward(x, x, x, {}, false));
  };
  torch::manual_seed(1);
  const Tensor x = torch::randn({9, 2, 12}).requires_grad_(), direction = torch::randn(x.sizes());
  const Tensor y = with_seed(x, 5);
  EXPECT_TRUE(made_by(y, "::Attention"));
  EXPECT_TRUE(torch::equal(y, with_seed(x, 5)));
  EXPECT_FALSE(torch::allclose(y, with_seed(x, 6)));
  // By differences, once and twice.
  const auto value = [&](double at) { return loss_of(with_seed(x.detach() + at * direction, 5)).item<double>(); };
  constexpr double kStep = 1e-2;
  const auto slope = [&](double at) {
    const Tensor here = (x.detach() + at * direction).requires_grad_();
    const auto g = torch::autograd::grad({loss_of(with_seed(here, 5))}, {here})[0];
    return (g * direction).sum().item<double>();
  };
  EXPECT_NEAR((value(kStep) - value(-kStep)) / (2 * kStep), slope(0), 2e-2 * std::abs(slope(0)) + 1e-3);
  const auto g = torch::autograd::grad({loss_of(with_seed(x, 5))}, {x}, {}, true, true)[0];
  const auto bend = torch::autograd::grad({(g * direction).sum()}, {x})[0];
  EXPECT_NEAR((bend * direction).sum().item<double>(), (slope(kStep) - slope(-kStep)) / (2 * kStep),
              2e-2 * std::abs((bend * direction).sum().item<double>()) + 1e-2);
  optimize(*layer, {.operators = Operators::libtorch});
}

// The mean over many draws is what there is without dropout.
TEST(Layers, DropoutOfAttentionKeepsTheMean) {
  torch::NoGradGuard no_grad;
  const Tensor q = torch::randn({1, 2, 5, 3}), k = torch::randn({1, 2, 7, 3}), v = torch::randn({1, 2, 7, 3});
  const nn::Linear any(1, 1);
  const Tensor wanted = dot_product_attention(q, k, v, {}, 0, false);
  optimize(*any, kAll);
  Tensor sum = torch::zeros_like(wanted);
  constexpr int kDraws = 4000;
  for (int n = 0; n < kDraws; ++n) sum += dot_product_attention(q, k, v, {}, 0.5, false);
  optimize(*any, {.operators = Operators::libtorch});
  EXPECT_LT((sum / kDraws - wanted).abs().max().item<double>(), 0.1);
}

TEST(Layers, WordsThatTheTableLacks) {
  nn::Embedding table(5, 3);
  optimize(*table, kAll);
  EXPECT_THROW(table(torch::tensor({1, 5})), std::exception);
  EXPECT_THROW(table(torch::tensor({-1})), std::exception);
  EXPECT_EQ(table(torch::empty({0}, torch::kInt64)).size(0), 0);
  optimize(*table, {.operators = Operators::libtorch});
}

// The layers of LibTorch's own transformer, inside of its library.
TEST(Layers, Transformer) {
  torch::manual_seed(1);
  nn::TransformerEncoderLayer ours(nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  auto theirs = std::dynamic_pointer_cast<nn::TransformerEncoderLayerImpl>(ours->clone());
  const Tensor x = torch::randn({7, 2, 12});
  const Tensor wanted = theirs->forward(x);
  loss_of(wanted).backward();
  optimize(*ours, kAll);
  const Tensor y = ours(x);
  loss_of(y).backward();
  optimize(*ours, {.operators = Operators::libtorch});
  expect_close(y, wanted, "output");
  EXPECT_TRUE(made_by(y, "::Linear"));
  for (const auto& item : theirs->named_parameters()) {
    expect_close(ours->named_parameters()[item.key()].grad(), item.value().grad(), item.key());
  }
}

}  // namespace layers_test
}  // namespace trireme::operators

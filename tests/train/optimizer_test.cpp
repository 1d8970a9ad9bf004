#include "trireme/train/optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using ::testing::HasSubstr;

// More than one grain, less than one vector, one dimension, no elements.
const std::vector<std::vector<std::int64_t>> kShapes = {{300, 150}, {3, 5}, {4096}, {7}, {0, 4}};

NamedTensors make_parameters(torch::Dtype type = torch::kFloat) {
  torch::manual_seed(3);
  NamedTensors parameters;
  for (const auto& shape : kShapes) {
    auto parameter = torch::randn(shape).to(type).set_requires_grad(true);
    parameters.emplace_back("p" + std::to_string(parameters.size()), parameter);
  }
  return parameters;
}

// The same numbers in every other element of a larger memory: no fused pass there.
NamedTensors strided(const NamedTensors& parameters) {
  NamedTensors others;
  for (const auto& [name, parameter] : parameters) {
    auto shape = parameter.sizes().vec();
    shape.push_back(2);
    auto other = torch::zeros(shape).select(-1, 0);
    other.copy_(parameter.detach());
    others.emplace_back(name, other.set_requires_grad(true));
  }
  return others;
}

// Gradients of step `step`, alike for everyone; the last but one parameter has none in every third step.
void set_gradients(const NamedTensors& parameters, int step) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + step));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor parameter = parameters[i].second;
    auto gradient = torch::randn(parameter.sizes()).to(parameter.scalar_type()) * 0.1;
    parameter.mutable_grad() = i == 3 && step % 3 == 2 ? torch::Tensor() : gradient;
  }
}

double lr_of(int step) { return 0.05 / (1 + 0.1 * step); }

void run(Optimizer& optimizer, const NamedTensors& parameters, int first, int last) {
  for (int step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.step(lr_of(step));
  }
}

void expect_near(const NamedTensors& ours, const NamedTensors& theirs, double tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    auto a = ours[i].second.detach().to(torch::kDouble), b = theirs[i].second.detach().to(torch::kDouble);
    if (a.numel() == 0) continue;
    EXPECT_LE(((a - b).abs() / (b.abs() + 1)).max().item<double>(), tolerance) << ours[i].first;
  }
}

void expect_equal(const NamedTensors& ours, const NamedTensors& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, theirs[i].first);
    EXPECT_TRUE(torch::equal(ours[i].second, theirs[i].second)) << ours[i].first;
  }
}

std::vector<torch::Tensor> tensors(const NamedTensors& named) {
  std::vector<torch::Tensor> all;
  for (const auto& item : named) all.push_back(item.second);
  return all;
}

// On a busy machine threads that meet after every operation wait for each other more than they compute.
struct OneThread {
  OneThread() { torch::set_num_threads(1); }
  ~OneThread() { torch::set_num_threads(threads); }
  const int threads = torch::get_num_threads();
};

// Ours beside LibTorch's own, 20 steps.
template <class Theirs>
void compare(std::string_view name, const OptimizerOptions& options, Theirs make_theirs) {
  OneThread one_thread;
  for (auto type : {torch::kFloat, torch::kDouble}) {
    auto ours = make_parameters(type), theirs = make_parameters(type);
    auto optimizer = make_optimizer(name, ours, options);
    auto reference = make_theirs(tensors(theirs));
    for (int step = 0; step < 20; ++step) {
      set_gradients(ours, step);
      for (std::size_t i = 0; i < ours.size(); ++i) theirs[i].second.mutable_grad() = ours[i].second.grad();
      optimizer->step(lr_of(step));
      for (auto& group : reference.param_groups()) group.options().set_lr(lr_of(step));
      reference.step();
    }
    expect_near(ours, theirs, type == torch::kFloat ? 1e-6 : 1e-13);
  }
}

TEST(TrainOptimizer, SgdIsLibTorchs) {
  for (OptimizerOptions options : {OptimizerOptions{.momentum = 0}, OptimizerOptions{.momentum = 0.9},
                                   OptimizerOptions{.momentum = 0.9, .weight_decay = 0.01},
                                   OptimizerOptions{.momentum = 0.8, .weight_decay = 0.01, .nesterov = true}}) {
    compare("sgd", options, [&](std::vector<torch::Tensor> parameters) {
      return torch::optim::SGD(parameters, torch::optim::SGDOptions(0.1)
                                               .momentum(options.momentum)
                                               .weight_decay(options.weight_decay)
                                               .nesterov(options.nesterov));
    });
  }
}

TEST(TrainOptimizer, AdamIsLibTorchs) {
  for (double decay : {0.0, 0.1}) {
    compare("adam", {.weight_decay = decay}, [&](std::vector<torch::Tensor> parameters) {
      return torch::optim::Adam(parameters, torch::optim::AdamOptions(0.1).weight_decay(decay));
    });
  }
}

TEST(TrainOptimizer, AdamWIsLibTorchs) {
  for (double decay : {0.0, 0.1}) {
    compare("adamw", {.weight_decay = decay, .beta1 = 0.8}, [&](std::vector<torch::Tensor> parameters) {
      return torch::optim::AdamW(parameters, torch::optim::AdamWOptions(0.1).weight_decay(decay).betas({0.8, 0.999}));
    });
  }
}

using Vector = std::vector<double>;

double norm(const Vector& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

// One parameter by the paper's formulas, a number at a time.
struct Scalars {
  Vector w, m, v;
  bool layer;  // more than one dimension
  int t = 0;

  void lars(const Vector& g, double lr, const OptimizerOptions& o) {
    double rate = layer && norm(w) > 0 && norm(g) > 0 ? o.trust * norm(w) / (norm(g) + o.weight_decay * norm(w)) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = o.momentum * m[i] + lr * rate * (g[i] + o.weight_decay * w[i]);
      w[i] -= m[i];
    }
  }

  void lamb(const Vector& g, double lr, const OptimizerOptions& o) {
    ++t;
    Vector u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      double mean = m[i] / (1 - std::pow(o.beta1, t)), square = v[i] / (1 - std::pow(o.beta2, t));
      u[i] = mean / (std::sqrt(square) + o.epsilon) + o.weight_decay * w[i];
    }
    double ratio = layer && norm(w) > 0 && norm(u) > 0 ? norm(w) / norm(u) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * ratio * u[i];
  }
};

Vector numbers(const torch::Tensor& tensor) {
  auto wide = tensor.detach().to(torch::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

void compare_with_scalars(std::string_view name,
                          void (Scalars::*step_one)(const Vector&, double, const OptimizerOptions&)) {
  OneThread one_thread;
  OptimizerOptions options{.weight_decay = 0.01, .trust = 0.02};
  for (auto type : {torch::kFloat, torch::kDouble}) {
    auto parameters = make_parameters(type);
    {
      torch::NoGradGuard no_grad;
      parameters[1].second.zero_();  // a norm of zero
    }
    std::vector<Scalars> oracle;
    for (const auto& [key, parameter] : parameters) {
      Vector zeros(static_cast<std::size_t>(parameter.numel()));
      oracle.push_back({numbers(parameter), zeros, zeros, parameter.dim() > 1});
    }
    auto optimizer = make_optimizer(name, parameters, options);
    for (int step = 0; step < 10; ++step) {
      set_gradients(parameters, step);
      optimizer->step(lr_of(step));
      for (std::size_t i = 0; i < oracle.size(); ++i) {
        auto gradient = parameters[i].second.grad();
        if (gradient.defined()) (oracle[i].*step_one)(numbers(gradient), lr_of(step), options);
      }
    }
    for (std::size_t i = 0; i < oracle.size(); ++i) {
      Vector ours = numbers(parameters[i].second);
      for (std::size_t k = 0; k < ours.size(); ++k) {
        double allowed = (type == torch::kFloat ? 1e-6 : 1e-13) * (1 + std::abs(oracle[i].w[k]));
        ASSERT_NEAR(ours[k], oracle[i].w[k], allowed) << parameters[i].first << " " << k;
      }
    }
  }
}

TEST(TrainOptimizer, LarsIsThePapers) { compare_with_scalars("lars", &Scalars::lars); }
TEST(TrainOptimizer, LambIsThePapers) { compare_with_scalars("lamb", &Scalars::lamb); }

class Optimizers : public ::testing::TestWithParam<std::string_view> {
 protected:
  const OptimizerOptions options_{.weight_decay = 0.01};
  const OneThread one_thread_;
};

TEST_P(Optimizers, AreTheSameFusedAndByOperations) {
  auto fused = make_parameters(), plain = strided(fused);
  auto first = make_optimizer(GetParam(), fused, options_), second = make_optimizer(GetParam(), plain, options_);
  run(*first, fused, 0, 10);
  run(*second, plain, 0, 10);
  expect_near(fused, plain, 1e-6);
}

TEST_P(Optimizers, GoOnExactlyFromTheirState) {
  auto through = make_parameters();
  auto optimizer = make_optimizer(GetParam(), through, options_);
  run(*optimizer, through, 0, 5);
  auto resumed = make_parameters();
  {
    torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < resumed.size(); ++i) resumed[i].second.copy_(through[i].second);
  }
  NamedTensors saved;
  for (const auto& [name, tensor] : optimizer->state()) saved.emplace_back(name, tensor.clone());
  run(*optimizer, through, 5, 10);

  auto other = make_optimizer(GetParam(), resumed, options_);
  other->load(saved);
  run(*other, resumed, 5, 10);
  expect_equal(resumed, through);
  expect_equal(other->state(), optimizer->state());
}

TEST_P(Optimizers, DoNotDependOnThreads) {
  std::vector<NamedTensors> results;
  for (int count : {1, 2, 3}) {
    torch::set_num_threads(count);
    auto parameters = make_parameters();
    auto optimizer = make_optimizer(GetParam(), parameters, options_);
    run(*optimizer, parameters, 0, 4);
    results.push_back(parameters);
  }
  expect_equal(results[1], results[0]);
  expect_equal(results[2], results[0]);
}

// Weights in channels-last order are dense as well.
TEST_P(Optimizers, TakeOtherOrdersOfMemory) {
  torch::manual_seed(5);
  auto values = torch::randn({6, 5, 3, 3}), gradient = torch::randn({6, 5, 3, 3});
  auto step = [&](torch::MemoryFormat parameter_format, torch::MemoryFormat gradient_format) {
    auto parameter = values.clone(parameter_format).set_requires_grad(true);
    parameter.mutable_grad() = gradient.clone(gradient_format);
    auto optimizer = make_optimizer(GetParam(), {{"p", parameter}}, options_);
    for (int i = 0; i < 3; ++i) optimizer->step(0.1);
    return NamedTensors{{"p", parameter.contiguous()}};
  };
  constexpr auto kPlain = torch::MemoryFormat::Contiguous, kLast = torch::MemoryFormat::ChannelsLast;
  auto plain = step(kPlain, kPlain);
  expect_near(step(kLast, kLast), plain, 1e-6);
  expect_near(step(kLast, kPlain), plain, 1e-6);
}

TEST_P(Optimizers, LeaveWhatHasNoGradient) {
  auto parameters = make_parameters(), before = make_parameters();
  auto optimizer = make_optimizer(GetParam(), parameters, options_);
  optimizer->step(0.1);
  expect_equal(parameters, before);
}

TEST_P(Optimizers, TellAutogradThatWeightsMoved) {
  auto parameters = make_parameters();
  auto optimizer = make_optimizer(GetParam(), parameters, options_);
  set_gradients(parameters, 0);
  auto version = parameters[0].second._version();
  optimizer->step(0.1);
  EXPECT_GT(parameters[0].second._version(), version);
}

TEST_P(Optimizers, RefuseAnothersState) {
  auto error_of = [&](const NamedTensors& state) -> std::string {
    auto optimizer = make_optimizer(GetParam(), make_parameters(), options_);
    try {
      optimizer->load(state);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  auto state = make_optimizer(GetParam(), make_parameters(), options_)->state();
  EXPECT_EQ(error_of(state), "no error");
  std::string name = state[0].first;
  auto missing = state;
  missing.erase(missing.begin());
  EXPECT_EQ(error_of(missing), "optimizer state: " + name + " is missing");
  auto shaped = state;
  shaped[0].second = torch::zeros({2, 3});
  EXPECT_EQ(error_of(shaped), "optimizer state: " + name + " is Float [2, 3], must be Float [300, 150]");
  auto more = state;
  more.emplace_back("other.momentum", torch::zeros({1}));
  EXPECT_THAT(error_of(more), HasSubstr("other.momentum"));
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const OptimizerEntry& entry : optimizers()) names.push_back(entry.kind.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, Optimizers, ::testing::ValuesIn(names()),
                         [](const auto& entry) { return std::string(entry.param); });

TEST(TrainOptimizer, RefusesWhatCannotBe) {
  auto error_of = [](std::string_view name, const OptimizerOptions& options) -> std::string {
    try {
      make_optimizer(name, {}, options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("sgdd", {}),
            "no optimizer is called sgdd; did you mean sgd? there are sgd, adam, adamw, lars, lamb");
  EXPECT_EQ(error_of("sgd", {.momentum = 1}), "optimizer sgd: momentum must be from 0 to below 1, not 1");
  EXPECT_EQ(error_of("sgd", {.momentum = 0, .nesterov = true}), "optimizer sgd: nesterov needs a momentum above 0");
  EXPECT_EQ(error_of("adam", {.nesterov = true}), "optimizer adam: nesterov is for sgd alone");
  EXPECT_EQ(error_of("adam", {.beta2 = -1}), "optimizer adam: beta2 must be from 0 to below 1, not -1");
  EXPECT_EQ(error_of("lamb", {.weight_decay = std::nan("")}),
            "optimizer lamb: weight decay must be at least 0, not nan");
}

}  // namespace
}  // namespace trireme::train

#include "trireme/train/optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/optim/textbook.h"
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

void run(Optimizer& optimizer, const NamedTensors& parameters, int first, int last, double rate = 1) {
  for (int step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.step(rate * lr_of(step));
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

// LibTorch's own with these options, by our names.
using Reference = std::unique_ptr<torch::optim::Optimizer>;
using References = std::map<std::string, std::function<Reference(std::vector<torch::Tensor>, const optim::Options&)>>;

const References& references() {
  using namespace torch::optim;  // NOLINT
  auto adam = [](auto options, const optim::Options& o) {
    return options.weight_decay(o.weight_decay).betas({o.beta1, o.beta2}).eps(o.epsilon).amsgrad(o.amsgrad);
  };
  static const References all{
      {"sgd",
       [](auto parameters, const auto& o) -> Reference {
         return std::make_unique<SGD>(parameters, SGDOptions(0.1)
                                                      .momentum(o.momentum)
                                                      .weight_decay(o.weight_decay)
                                                      .dampening(o.dampening)
                                                      .nesterov(o.nesterov));
       }},
      {"adam",
       [adam](auto parameters, const auto& o) -> Reference {
         return std::make_unique<Adam>(parameters, adam(AdamOptions(0.1), o));
       }},
      {"adamw",
       [adam](auto parameters, const auto& o) -> Reference {
         return std::make_unique<AdamW>(parameters, adam(AdamWOptions(0.1), o));
       }},
      {"rmsprop",
       [](auto parameters, const auto& o) -> Reference {
         return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.1)
                                                          .alpha(o.alpha)
                                                          .eps(o.epsilon)
                                                          .weight_decay(o.weight_decay)
                                                          .momentum(o.momentum)
                                                          .centered(o.centered));
       }},
      {"adagrad",
       [](auto parameters, const auto& o) -> Reference {
         return std::make_unique<Adagrad>(parameters, AdagradOptions(0.1)
                                                          .lr_decay(o.lr_decay)
                                                          .weight_decay(o.weight_decay)
                                                          .initial_accumulator_value(o.initial_accumulator)
                                                          .eps(o.epsilon));
       }},
  };
  return all;
}

double farthest(const NamedTensors& some, const NamedTensors& others) {
  double worst = 0;
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto a = some[i].second.detach().to(torch::kDouble), b = others[i].second.detach().to(torch::kDouble);
    if (a.numel() > 0) worst = std::max(worst, ((a - b).abs() / (b.abs() + 1)).max().item<double>());
  }
  return worst;
}

// Ours beside LibTorch's own, 20 steps. In f32 an element whose gradient is near zero may take a step that is mostly
// rounding: there ours is as near to LibTorch's in f64, of the same gradients, as LibTorch's in f32 is.
TEST(TrainOptimizer, AreLibTorchsWhereItHasThem) {
  OneThread one_thread;
  for (const auto& [name, make_theirs] : references()) {
    for (const auto& options : optim::variants(find_optimizer(name))) {
      SCOPED_TRACE(name);
      for (auto type : {torch::kFloat, torch::kDouble}) {
        auto ours = make_parameters(type), theirs = make_parameters(type), exact = make_parameters(torch::kDouble);
        auto optimizer = make_optimizer(name, ours, {options, {}});
        auto reference = make_theirs(tensors(theirs), options), truth = make_theirs(tensors(exact), options);
        for (int step = 0; step < 20; ++step) {
          set_gradients(ours, step);
          for (std::size_t i = 0; i < ours.size(); ++i) {
            const auto& gradient = ours[i].second.grad();
            theirs[i].second.mutable_grad() = gradient;
            exact[i].second.mutable_grad() = gradient.defined() ? gradient.to(torch::kDouble) : gradient;
          }
          optimizer->step(lr_of(step));
          for (auto* one : {reference.get(), truth.get()}) {
            for (auto& group : one->param_groups()) group.options().set_lr(lr_of(step));
            one->step();
          }
        }
        if (type == torch::kDouble) {
          EXPECT_LE(farthest(ours, theirs), 1e-13);
        }
        EXPECT_LE(farthest(ours, exact), 1e-6 + 2 * farthest(theirs, exact));
      }
    }
  }
}

// Those that LibTorch lacks, by the papers' formulas, where they are operations: f64.
TEST(TrainOptimizer, OperationsAreTheFormulas) {
  OneThread one_thread;
  for (const auto& kind : optim::optimizers()) {
    for (const auto& options : optim::variants(kind)) {
      auto parameters = make_parameters(torch::kDouble);
      {
        torch::NoGradGuard no_grad;
        parameters[1].second.zero_();  // a norm of zero
      }
      auto doubles = [](const torch::Tensor& tensor) {
        auto flat = tensor.detach().contiguous();
        return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      };
      std::vector<optim::Textbook> oracle;
      for (const auto& [key, parameter] : parameters) {
        oracle.push_back({std::string(kind.name), options, doubles(parameter), parameter.dim() > 1});
      }
      auto optimizer = make_optimizer(kind.name, parameters, {options, {}});
      for (int step = 0; step < 10; ++step) {
        set_gradients(parameters, step);
        optimizer->step(lr_of(step));
        for (std::size_t i = 0; i < oracle.size(); ++i) {
          auto gradient = parameters[i].second.grad();
          if (gradient.defined()) oracle[i].step(doubles(gradient), lr_of(step));
        }
      }
      for (std::size_t i = 0; i < oracle.size(); ++i) {
        const auto ours = doubles(parameters[i].second);
        double worst = 0;
        for (std::size_t k = 0; k < ours.size(); ++k) {
          worst = std::max(worst, std::abs(ours[k] - oracle[i].w[k]) / (1 + std::abs(oracle[i].w[k])));
        }
        EXPECT_LE(worst, 1e-12) << kind.name << " " << parameters[i].first;
      }
    }
  }
}

class Optimizers : public ::testing::TestWithParam<std::string_view> {
 protected:
  const OptimizerOptions options_{{.weight_decay = 0.01, .momentum = 0.9}, {}};
  const OneThread one_thread_;
};

TEST_P(Optimizers, AreTheSameFusedAndByOperations) {
  auto fused = make_parameters(), plain = strided(fused);
  auto first = make_optimizer(GetParam(), fused, options_), second = make_optimizer(GetParam(), plain, options_);
  // A mean of squares begins with 1 - alpha of the first: its steps are ten times as long.
  const double rate = find_optimizer(GetParam()).mean_square ? 0.1 : 1;
  run(*first, fused, 0, 10, rate);
  run(*second, plain, 0, 10, rate);
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
  for (const auto& kind : optim::optimizers()) names.push_back(kind.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, Optimizers, ::testing::ValuesIn(names()),
                         [](const auto& entry) { return std::string(entry.param); });

TEST(TrainOptimizer, RefusesWhatCannotBe) {
  auto error_of = [](std::string_view name, const optim::Options& options) -> std::string {
    try {
      make_optimizer(name, {}, {options, {}});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("sgdd", {}),
            "no optimizer is called sgdd; did you mean sgd? there are sgd, adam, adamw, rmsprop, adagrad, lars, lamb");
  EXPECT_EQ(error_of("sgd", {.momentum = 1}), "optimizer sgd: momentum must be from 0 to below 1, not 1");
  EXPECT_EQ(error_of("sgd", {.momentum = 0, .nesterov = true}), "optimizer sgd: nesterov needs a momentum above 0");
  EXPECT_EQ(error_of("adam", {.nesterov = true}), "optimizer adam: nesterov is for sgd alone");
  EXPECT_EQ(error_of("adam", {.beta2 = -1}), "optimizer adam: beta2 must be from 0 to below 1, not -1");
  EXPECT_EQ(error_of("lamb", {.weight_decay = std::nan("")}),
            "optimizer lamb: weight decay must be at least 0, not nan");
}

// A user's own on flat memory has no operations: copies on the CPU serve.
// Last, as the list is longer from here on.
TEST(TrainOptimizer, OnesWithoutOperationsAreSteppedInCopies) {
  static const bool added = [] {
    auto kind = *optim::find_optimizer("rmsprop");
    kind.name = "users-rmsprop";
    add_optimizer({.kind = kind});
    return true;
  }();
  ASSERT_TRUE(added);
  auto dense = make_parameters(), views = strided(dense);
  auto first = make_optimizer("rmsprop", dense), second = make_optimizer("users-rmsprop", views);
  run(*first, dense, 0, 5);
  run(*second, views, 0, 5);
  expect_equal(views, dense);
  auto wide = make_parameters(torch::kDouble);
  auto third = make_optimizer("users-rmsprop", wide);
  EXPECT_THROW(run(*third, wide, 0, 1), ConfigError);
}

}  // namespace
}  // namespace trireme::train

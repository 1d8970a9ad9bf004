#include "trireme/nn/dropout.h"

#include <mutex>
#include <utility>
#include <vector>

namespace trireme::nn {
namespace {

struct Random {
  std::uint64_t seed = 0;
  std::vector<std::pair<torch::Device, at::Generator>> generators;
};

thread_local Random random_of_thread;

at::Generator generator_on(torch::Device device) {
  for (auto& [known, generator] : random_of_thread.generators) {
    if (known == device) return generator;
  }
  at::Generator shared = at::globalContext().defaultGenerator(device);
  at::Generator own = [&] {
    std::scoped_lock lock(shared.mutex());
    return shared.clone();
  }();
  own.set_current_seed(random_of_thread.seed);
  random_of_thread.generators.emplace_back(device, own);
  return own;
}

}  // namespace

void set_random(std::uint64_t seed) {
  random_of_thread.seed = seed;
  for (auto& [device, generator] : random_of_thread.generators) generator.set_current_seed(seed);
}

RandomState random_state() {
  RandomState state{random_of_thread.seed};
  for (auto& [device, generator] : random_of_thread.generators) {
    state.generators.emplace_back(device, generator.get_state());
  }
  return state;
}

namespace {

void set_random_state(const RandomState& state) {
  set_random(state.seed);  // those made since start from the seed, as they did
  for (const auto& [device, generator] : state.generators) generator_on(device).set_state(generator);
}

}  // namespace

RandomScope::RandomScope(const RandomState& state) : before_(random_state()) { set_random_state(state); }
RandomScope::~RandomScope() { set_random_state(before_); }

torch::Tensor DropoutImpl::forward(torch::Tensor input) {
  if (!is_training() || probability_ == 0) return input;
  double kept = 1 - probability_;
  torch::Tensor mask;
  {
    torch::NoGradGuard no_grad;
    mask = torch::empty_like(input).bernoulli_(kept, generator_on(input.device())).div_(kept);
  }
  return input * mask;
}

}  // namespace trireme::nn

#include "trireme/nn/dropout.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <utility>
#include <vector>

#include "trireme/operators/dropout.h"

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

std::uint64_t next_random() {
  auto generator = generator_on(torch::kCPU);
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

RandomScope::RandomScope(const RandomState& state) : before_(random_state()) { set_random_state(state); }
RandomScope::~RandomScope() { set_random_state(before_); }

// By our operator and by LibTorch's numbers other elements fall, of as large a share.
torch::Tensor DropoutImpl::draw(torch::Tensor mask) const {
  torch::NoGradGuard no_grad;
  if (operators::takes_dropout(mask, probability_)) {
    return operators::seeded_dropout(mask.fill_(1), probability_, next_random());
  }
  const double kept = 1 - probability_;
  return mask.bernoulli_(kept, generator_on(mask.device())).div_(kept);
}

torch::Tensor DropoutImpl::plain(const torch::Tensor& input) {
  if (rests()) return input;
  if (operators::takes_dropout(input, probability_))
    return operators::seeded_dropout(input, probability_, next_random());
  return input * draw(torch::empty_like(input));
}

torch::Tensor DropoutImpl::added(const torch::Tensor& residual, const torch::Tensor& input) {
  if (rests() || split() || !operators::takes_dropout(input, probability_)) return residual + forward(input);
  return operators::seeded_dropout_added(input, residual, probability_, next_random());
}

torch::Tensor DropoutImpl::part(const torch::Tensor& input, std::int64_t dim, std::int64_t begin, std::int64_t size) {
  if (rests()) return input;
  auto whole = input.sizes().vec();
  whole[dim] = size;
  return input * draw(torch::empty(whole, input.options())).narrow(dim, begin, input.size(dim));
}

}  // namespace trireme::nn

#include "trireme/train/strategy.h"

#include <algorithm>

#include "trireme/train/flat.h"

namespace trireme::train {
namespace {

constexpr const char* kOfStrategy = "strategy.";

// What is left of sgd's momentum to codecs that take its place, or feed back errors so late that both together swing.
double momentum_beside(const compress::Rules& rules, const Config& config) {
  const bool of_gradients = sync::Choice::parse(config.strategy).kind->compresses == sync::Kind::Compresses::gradients;
  return config.optimizer == "sgd" && of_gradients && (rules.takes_momentum() || rules.lags()) ? 0 : config.momentum;
}
// The rate makes up for it as far as is stable.
constexpr double kMostRate = 6;

ps::UpdateSpec server_update(const Config& config) {
  const double momentum = momentum_beside({config.compress, config.compress_rule}, config);
  return {.name = config.optimizer == "sgd" && momentum > 0 ? "momentum" : config.optimizer,
          .momentum = momentum,
          .weight_decay = config.weight_decay,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon};
}

}  // namespace

std::unique_ptr<sync::Strategy> make_strategy(const Config& config, const Workload& work, Communicator& world,
                                              ps::Client* client, std::int64_t steps_per_epoch) {
  auto choice = sync::Choice::parse(config.strategy);
  sync::Surroundings around{.world = world,
                            .steps_per_epoch = steps_per_epoch,
                            .total_steps = config.steps > 0 ? config.steps : config.epochs * steps_per_epoch,
                            .seed = static_cast<std::uint64_t>(config.seed),
                            .client = client,
                            .timeout_s = config.timeout,
                            .compress = {config.compress, config.compress_rule}};
  if (around.compress.takes_momentum()) around.momentum = config.momentum;
  if (choice.kind->needs_servers || !around.compress.none()) around.tensors = Flat::outline(*work.model);
  if (choice.kind->needs_servers) around.update = server_update(config);
  return choice.make(around);
}

sync::Strategy::Pace pace_of(const Config& config, const sync::Strategy& strategy) {
  const compress::Rules rules(config.compress, config.compress_rule);
  if (rules.takes_momentum()) return {0, 1};
  const auto pace =
      config.optimizer == "sgd" ? strategy.pace(config.momentum) : sync::Strategy::Pace{config.momentum, 1};
  const bool replaced = momentum_beside(rules, config) < pace.momentum;
  return replaced ? sync::without_momentum(config.momentum, kMostRate) : pace;
}

void keep(sync::Strategy& strategy, Keepsake& with) {
  for (auto& [name, values] : strategy.state()) {
    with.tensors.emplace_back(kOfStrategy + name,
                              torch::from_blob(values.data(), {static_cast<std::int64_t>(values.size())},
                                               torch::TensorOptions(torch::kFloat32)));
  }
}

void restore(sync::Strategy& strategy, const LoadedCheckpoint& checkpoint) {
  for (auto& [name, values] : strategy.state()) {
    for (const auto& [kept, tensor] : checkpoint.tensors) {
      if (kept == kOfStrategy + name && tensor.numel() == static_cast<std::int64_t>(values.size())) {
        std::ranges::copy_n(tensor.contiguous().data_ptr<float>(), tensor.numel(), values.data());
      }
    }
  }
}

}  // namespace trireme::train

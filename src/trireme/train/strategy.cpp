#include "trireme/train/strategy.h"

#include <algorithm>

#include "trireme/train/flat.h"

namespace trireme::train {
namespace {

// Whether gradients' codes feed back errors so late that they would swing with momentum.
bool codes_lag(const Config& config) {
  return config.optimizer == "sgd" && compress::Rules(config.compress, config.compress_rule).lags() &&
         sync::Choice::parse(config.strategy).kind->compresses == sync::Kind::Compresses::gradients;
}
// The rate makes up for the momentum as far as is stable, and what comes all at once is cut.
constexpr double kMostRate = 6, kMostNorm = 2;

ps::UpdateSpec server_update(const Config& config) {
  const double momentum = codes_lag(config) ? 0 : config.momentum;
  return {.name = config.optimizer == "sgd" && momentum > 0 ? "momentum" : config.optimizer,
          .momentum = momentum,
          .weight_decay = config.weight_decay,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon};
}

}  // namespace

std::unique_ptr<sync::Strategy> make_strategy(const Config& config, torch::nn::Module& model, Communicator& world,
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
  if (choice.kind->needs_servers || !around.compress.none()) around.tensors = Flat::outline(model);
  if (choice.kind->needs_servers) around.update = server_update(config);
  return choice.make(around);
}

sync::Strategy::Pace pace_of(const Config& config, const sync::Strategy& strategy) {
  if (compress::Rules(config.compress, config.compress_rule).takes_momentum()) return {0, 1};
  if (config.optimizer != "sgd") return {config.momentum, 1};
  const auto pace = strategy.pace(config.momentum);
  return pace.momentum > 0 && codes_lag(config) ? sync::without_momentum(config.momentum, kMostRate) : pace;
}

double clip_of(const Config& config, const sync::Strategy& strategy) {
  if (config.clip > 0) return config.clip;
  return strategy.in_backward() && config.momentum > 0 && codes_lag(config) ? kMostNorm : 0;
}

}  // namespace trireme::train

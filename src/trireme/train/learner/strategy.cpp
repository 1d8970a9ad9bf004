#include "trireme/train/learner/strategy.h"

#include "trireme/optim/optimizers.h"
#include "trireme/sync/pace_with_codes.h"
#include "trireme/train/learner/flat_model.h"
#include "trireme/train/learner/tables.h"

namespace trireme::train {
namespace {

sync::Pace with_codes(const Config& config, const sync::Pace& own) {
  if (!optim::is(&optim::OptimizerKind::linear, config.optimizer)) return {.momentum = momentum_of(config)};
  return sync::pace_with_codes(*sync::Choice::parse(config.strategy).kind, {config.compress, config.compress_rule}, own,
                               momentum_of(config));
}

ps::UpdateSpec server_update(const Config& config) {
  const double momentum = with_codes(config, {.momentum = momentum_of(config)}).momentum;
  return {config.optimizer, optimizer_options(config, momentum)};
}

}  // namespace

std::unique_ptr<sync::Strategy> make_strategy(const Config& config, torch::nn::Module& model, Communicator& world,
                                              ps::Client* client, std::int64_t steps_per_epoch) {
  auto choice = sync::Choice::parse(config.strategy);
  sync::Context context{.world = world,
                        .steps_per_epoch = steps_per_epoch,
                        .total_steps = config.steps > 0 ? config.steps : config.epochs * steps_per_epoch,
                        .seed = static_cast<std::uint64_t>(config.seed),
                        .client = client,
                        .timeout_s = config.timeout,
                        .compress = {config.compress, config.compress_rule},
                        .not_finite = sync::NotFinite::counts_as_zero};  // and is told
  context.clips = config.clip > 0;
  if (context.compress.takes_momentum()) context.momentum = momentum_of(config);
  if (choice.kind->needs_servers || !context.compress.none()) context.tensors = FlatModel::outline(model);
  if (choice.kind->needs_servers) context.update = server_update(config);
  context.own_optimizer = !ps::has_update(config.optimizer);
  if (config.sparse) context.tables = tables_of(model).by_rows;
  return choice.make(context);
}

void check_compress_rules(const Config& config, torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& one : FlatModel::outline(model)) names.push_back(one.name);
  compress::Rules(config.compress, config.compress_rule).check_patterns(names, config.model);
}

sync::Pace pace_of(const Config& config, const sync::Strategy& strategy) {
  return with_codes(config, strategy.pace(momentum_of(config)));
}

double own_clip(const Config& config, const sync::Strategy& strategy, int workers) {
  return sync::own_clip(strategy, pace_of(config, strategy), config.clip, workers);
}

}  // namespace trireme::train

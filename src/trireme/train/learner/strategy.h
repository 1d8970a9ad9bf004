// A strategy as a run is told to use it: made and paced.
#pragma once
#include <memory>

#include "trireme/ps/client/client.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/checkpoint/state.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

// `client` where it needs servers.
std::unique_ptr<sync::Strategy> make_strategy(const Config& config, torch::nn::Module& model, Communicator& world,
                                              ps::Client* client, std::int64_t steps_per_epoch);

// Throws ConfigError that names a rule of --compress-rule that no parameter of the whole model follows.
void check_compress_rules(const Config& config, torch::nn::Module& model);

// What sgd has with this strategy and these codecs; other optimizers are left alone.
sync::Pace pace_of(const Config& config, const sync::Strategy& strategy);

// The most norm of what a worker clips (sync/pace.h); 0: any.
double own_clip(const Config& config, const sync::Strategy& strategy, int workers);

}  // namespace trireme::train

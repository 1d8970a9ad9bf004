// A strategy as a run is told to use it: made and paced.
#pragma once
#include <memory>

#include "trireme/ps/client.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/state.h"
#include "trireme/train/workload.h"

namespace trireme::train {

// `client` where it needs servers.
std::unique_ptr<sync::Strategy> make_strategy(const Config& config, torch::nn::Module& model, Communicator& world,
                                              ps::Client* client, std::int64_t steps_per_epoch);

// The momentum that sgd has with this strategy, and what its rate is multiplied by.
sync::Strategy::Pace pace_of(const Config& config, const sync::Strategy& strategy);

// The most norm that the gradients which the optimizer is given may have; 0: any.
double clip_of(const Config& config, const sync::Strategy& strategy);

}  // namespace trireme::train

// Measures what a step of a model costs a worker of this machine, layer by layer: what `trireme profile` writes.
#pragma once
#include <functional>
#include <string_view>

#include "trireme/cluster/profile/profile.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/train/config/config.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

struct ProfilerOptions {
  int steps = 20;        // measured, after some that warm up
  int noise_steps = 20;  // of training, over which gradients are compared; 0: not at all
  bool codecs = true;
  // Told what is being done, in a few words.
  std::function<void(std::string_view)> progress = [](std::string_view) {};
};

// All workers of `world` compute at the same time, so that they share the machine as they will in training; the first
// one's times count. The model is trained a little. Collective.
cluster::Profile profile_model(const Config& config, Workload& work, Communicator& world,
                               const ProfilerOptions& options);

}  // namespace trireme::train

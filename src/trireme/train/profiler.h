// Measures what a step of a model costs a worker of this machine, layer by layer: what `trireme profile` writes.
#pragma once
#include <functional>
#include <string_view>

#include "trireme/collective/communicator.h"
#include "trireme/plan/profile.h"
#include "trireme/train/config.h"
#include "trireme/train/workload.h"

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
plan::Profile profile_model(const Config& config, Workload& work, Communicator& world, const ProfilerOptions& options);

}  // namespace trireme::train

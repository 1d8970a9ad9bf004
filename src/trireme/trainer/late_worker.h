// A worker that joins a job while it runs, and helps: it takes batches from those that the job shares out, pushes their
// gradients to the servers and leaves when training is over, or when it is asked to. How good the model is, and what is
// kept of it, the workers decide that the job began with.
#pragma once
#include <csignal>
#include <functional>
#include <string_view>

#include "trireme/ps/client/client.h"
#include "trireme/train/learner/workload.h"

namespace trireme::train {

struct LateWorkerReport {
  std::int64_t batches = 0, samples = 0;
  double seconds = 0;
};

// `config` as the job's. `say` is told what a user should know. Throws ConfigError where the job's strategy does not
// share out batches, or it trains with other settings.
LateWorkerReport help(const Config& config, Workload& work, ps::Client& client, const volatile std::sig_atomic_t& stop,
                      const std::function<void(std::string_view)>& say);

}  // namespace trireme::train

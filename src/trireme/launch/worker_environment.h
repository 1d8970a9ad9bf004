// The variables a worker finds: torchrun's, and ours.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trireme/launch/job_key.h"
#include "trireme/launch/launch.h"
#include "trireme/launch/node_link.h"

namespace trireme::launch {

using Variables = std::map<std::string, std::string>;

// What all workers of this node share, over what this process inherited. The key goes in as hex unless it is in a file.
// Stale variables of an outer job are gone.
Variables common_environment(const LaunchSpec& spec, const Placement& placement, const JobKey& key);
// NAME=value of one worker; `rendezvous_fd` -1 where it has none.
std::vector<std::string> worker_environment(const Variables& common, int rank, int local_rank, int rendezvous_fd);

// max(1, cores this process may use ÷ workers).
int threads_per_worker(int workers);

}  // namespace trireme::launch

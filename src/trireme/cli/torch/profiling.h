// Profiles, made in this process.
#pragma once
#include "trireme/cluster/profile/profile.h"
#include "trireme/report/profile/profiler.h"

namespace trireme::cli {

// config.workers threads compute at the same time, each with a model of its own; the first one's profile.
cluster::Profile profile_on_threads(const train::Config& config, const train::ProfilerOptions& options = {});

}  // namespace trireme::cli

// Profiles, made in this process.
#pragma once
#include "trireme/plan/profile.h"
#include "trireme/train/profiler.h"

namespace trireme::cli {

// config.workers threads compute at the same time, each with a model of its own; the first one's profile.
plan::Profile profile_on_threads(const train::Config& config, const train::ProfilerOptions& options = {});

}  // namespace trireme::cli

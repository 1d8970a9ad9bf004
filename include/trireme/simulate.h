// The simulator in one include: what a training job would do on a cluster, without running it; link trireme::trireme.
//
//   auto cluster = trireme::load_cluster("cluster.toml");
//   auto profile = trireme::load_profile("profile.json");              // from `trireme profile`
//   trireme::Job job{.profile = &profile, .strategy = trireme::parse_strategy("local-sgd:H=8")};
//   auto seen = trireme::simulate(cluster, job);                        // seen.step_s, seen.why, …
//
// Files that are wrong throw DataError naming file and line, jobs that cannot run ConfigError.
#pragma once
#include <string_view>

#include "trireme/base/error.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/profile/profile.h"
#include "trireme/cluster/sim/job/simulate.h"

namespace trireme {

using cluster::Cluster;
using cluster::example_profile;
using cluster::Job;
using cluster::load_cluster;
using cluster::load_profile;
using cluster::Profile;
using cluster::simulate;
using cluster::Simulated;

// "local-sgd:H=8". Throws ConfigError that lists the names or settings.
inline sync::Choice parse_strategy(std::string_view text) { return sync::Choice::parse(text); }

}  // namespace trireme

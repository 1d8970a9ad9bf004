// A profile for people.
#pragma once
#include <string>

#include "trireme/cluster/profile/profile.h"

namespace trireme::cli {

// Lines that end with a line feed: the layers, the step, the codecs, the noise.
std::string profile_table(const cluster::Profile& profile);

}  // namespace trireme::cli

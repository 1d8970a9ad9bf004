// The folders that runs write to.
#pragma once
#include <string>

#include "trireme/train/config/config.h"

namespace trireme::cli {

// One that is not there yet: runs/TIME-MODEL-DATA.
std::string fresh_folder(const train::Config& config);
// The newest folder in runs/ that has a checkpoint. Throws ConfigError where there is none.
std::string newest_run();
// What the run in `folder` was told, as a base for what it is told now. Throws DataError where it has no whole
// checkpoint.
train::Config config_in(const std::string& folder);

}  // namespace trireme::cli

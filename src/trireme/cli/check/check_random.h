// trireme check --random: randomized collectives over short-lived groups, each result held against a plain computation.
#pragma once
#include <optional>
#include <string>

namespace trireme::cli {

struct RandomCheck {
  std::optional<std::string> ranks;  // worlds of these sizes, one after the other; none: 2..7, or the launcher's
  std::string count = "10000", seed = "1", transport = "shm";
  bool json = false;
};

// Throws Error that names the first wrong element and how to see it again.
void check_random(const RandomCheck& options);

}  // namespace trireme::cli

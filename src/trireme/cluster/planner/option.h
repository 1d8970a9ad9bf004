// One way to run a training job: the settings of `trireme train` that make it, and what is predicted of it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trireme::cluster {

// Keys of train's configuration ("sync.strategy") and their values as they are written on the command line.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Option {
  Settings settings;
  double step_s = 0;
  double samples_per_s = 0;          // of all workers
  std::uint64_t memory_bytes = 0;    // of the worker that needs most
  std::uint64_t bytes_per_step = 0;  // sent by all workers together
  // What is not known is 0: without noise in the profile the first, without prices in the cluster the second.
  double seconds_to_accuracy = 0;
  double price = 0;  // of the training to that accuracy; without one, of an epoch
  std::string why;   // one line: what bounds it, and what it gains over the next
};

}  // namespace trireme::cluster

// Trainings of this user that run on this host, found without asking them.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::cli {

struct RunUnderWay {
  pid_t process = 0;    // the first: its launcher, or the only one
  std::string command;  // "train", "compare", …
  std::string folder;   // what it writes to, as it was told; empty where that is not known
  std::string what;     // "lenet on mnist, 2 workers", of its run.json; empty where there is none yet
  double seconds = 0;   // since its start
};

// Longest under way first. `proc` is laid out as /proc is. What cannot be read is left out.
std::vector<RunUnderWay> runs_under_way(const std::filesystem::path& proc = "/proc");

// "lenet on mnist, 2 workers" of a run's folder; empty where its run.json does not say.
std::string description_of_run(const std::filesystem::path& folder);
// "status" of the same: "running", "done"; empty where there is none.
std::string status_of_run(const std::filesystem::path& folder);

}  // namespace trireme::cli

// Runs a comparison: each variant and seed in a process of its own, one after the other.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trireme/base/process/subprocess.h"
#include "trireme/report/compare/comparison.h"

namespace trireme::train {

// What is told while it goes on; all may be empty. Runs are counted from 1.
struct ComparisonWatch {
  std::function<void(int number, int of, const std::string& words)> begins;
  std::function<void(int number, int of, const ComparedRun& run)> ends;
  ChildWatch child;
};

struct ComparisonPlace {
  std::string program;                // `PROGRAM train FLAGS --json --out DIR` trains and prints one line of JSON
  std::filesystem::path folder;       // made where it is missing
  const StopRequest* stop = nullptr;  // ends the run at hand, and all
};

// All with the first seed, then all with the second, so that what disturbs the machine for a while disturbs all
// variants. What has finished before is not run again. compare.json is written after every run, with compare.csv,
// compare-curves.csv and compare.html. Returns how many were run. Throws Error where files cannot be written or the
// program cannot be started.
int run_comparison(Comparison& comparison, const ComparisonPlace& place, const ComparisonWatch& watch = {});

// The same words for each: program, train, every setting, --json and --out.
std::vector<std::string> train_command(const std::string& program, const Config& config);

}  // namespace trireme::train

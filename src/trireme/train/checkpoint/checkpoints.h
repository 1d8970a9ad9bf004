// The checkpoints of a run: DIR/step-00000123.safetensors, the last few of them, and DIR/best.safetensors. Each is
// written whole or not at all, by a thread of its own, and carries a checksum. docs/checkpoints.md says more.
#pragma once
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/train/checkpoint/safetensors_header.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

struct FoundCheckpoint {
  std::filesystem::path path;
  std::int64_t step = 0;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> found;
  std::vector<std::string> skipped;  // a line for each newer one that is broken, to be shown to the user
};

// The newest that is whole: header, length and checksum are right. A folder that is not there has none.
CheckpointSearch latest_checkpoint(const std::filesystem::path& folder);
CheckpointSearch best_checkpoint(const std::filesystem::path& folder);

struct LoadedCheckpoint {
  std::int64_t step = 0;
  std::optional<double> metric;
  NamedTensors tensors;
  Metadata metadata;  // as it was given to save()
};
// Throws DataError naming the file where anything is wrong with it.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& path);

// For one rank and one thread; save() returns once the tensors are copied.
class Checkpoints {
 public:
  // Makes the folder, and removes what a killed process left half-written there.
  // `higher_is_better`: of metrics.
  Checkpoints(std::filesystem::path folder, int keep_last, bool keep_best, bool higher_is_better = true);
  // Ends what is being written; an error of it is lost: call wait() first.
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Waits for the one before, copies the tensors and begins to write. Where the metric beats all
  // before it, also those of an earlier process in this folder, this one becomes best.safetensors.
  // Once it is written, those beyond the last k go, and those of later steps. Throws what went wrong with the one
  // before, and saves nothing then.
  void save(std::int64_t step, const NamedTensors& tensors, Metadata metadata = {},
            std::optional<double> metric = std::nullopt);
  // Until all is on the disk. Throws what went wrong, once.
  void wait();

  CheckpointSearch latest();
  CheckpointSearch best();
  // A run that goes on from `step` makes the later ones again: removes them, and the best where it is one of them.
  // -1 removes all.
  void forget_after(std::int64_t step);

 private:
  struct Job {
    std::int64_t step = 0;
    Metadata metadata;
    bool is_best = false;
  };
  void work(std::stop_token stop);
  void write(const Job& job);
  void stage(const NamedTensors& tensors);

  const std::filesystem::path folder_;
  const int keep_last_;
  const bool keep_best_, higher_is_better_;
  std::optional<double> best_metric_;  // the caller's thread
  NamedTensors staged_;                // the caller's while no job is there, else the worker's; memory is used again

  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<Job> job_ TRIREME_GUARDED_BY(mutex_);  // there until it is written
  std::exception_ptr failed_ TRIREME_GUARDED_BY(mutex_);
  std::jthread worker_;  // last, so that it ends first
};

}  // namespace trireme::train

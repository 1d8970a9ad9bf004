// Which of several implementations is fastest for a layer, shape and pass: measured when it is first met, and kept.
// What a call returns depends on the choice alone, and the choice stays: two runs on one machine compute the same bits.
#pragma once
#include <torch/torch.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/operators/settings.h"

namespace trireme::operators {

// The first candidate is LibTorch's where there is more than one: another must be faster beyond noise. Any thread.
class Trial {
 public:
  struct Candidate {
    std::string name;
    double predicted = 0;  // seconds; 0: nobody predicts it
    bool bf16 = false;     // rounds factors to it
    // Most difference from the first candidate's result, as a share of that result's norm.
    double tolerance() const { return bf16 ? 2e-2 : 1e-3; }
  };
  // `of` says all that times depend on, but for the machine, LibTorch and the instructions that kernels use.
  Trial(const std::string& of, std::vector<Candidate> candidates, const Settings& settings);

  // run(candidate) by the one that is picked. The first time, where nothing is known of this machine, all of them are
  // run before, in turns; other threads wait meanwhile.
  torch::Tensor run(const std::function<torch::Tensor(std::size_t)>& run) {
    int picked = picked_;
    if (picked < 0) picked = pick(run);
    return run(static_cast<std::size_t>(picked));
  }
  // What is picked, predicted and measured; before the first run, nothing.
  Use use() const;

 private:
  int pick(const std::function<torch::Tensor(std::size_t)>& run);

  const std::string of_;
  const std::vector<Candidate> candidates_;
  const Thoroughness thoroughness_;
  std::atomic<int> picked_ = -1;
  mutable Mutex mutex_;
  std::vector<double> seconds_ TRIREME_GUARDED_BY(mutex_);  // by candidate; 0: not measured
};

}  // namespace trireme::operators

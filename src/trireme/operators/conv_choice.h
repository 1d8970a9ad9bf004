// Which implementation a convolution's pass takes: the fastest of LibTorch's and the likely ones of ours. One choice
// for a shape in this process, whatever layers and learners have it.
#pragma once
#include <memory>
#include <vector>

#include "trireme/operators/conv_runs.h"
#include "trireme/operators/settings.h"
#include "trireme/operators/trial.h"

namespace trireme::operators {

class ConvChoice {
 public:
  // With `bf16` those that round factors to it are candidates, too.
  ConvChoice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings, bool bf16);

  torch::Tensor run(const ConvPass& pass);
  // For Layer::note.
  Use use() const;

 private:
  const ops::ConvShape shape_;
  const ops::Pass pass_;
  std::vector<ConvImplementation> implementations_;
  std::unique_ptr<Trial> trial_;
};

// Of this process, for the calling thread's number of threads.
std::shared_ptr<ConvChoice> conv_choice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings,
                                        bool bf16);

}  // namespace trireme::operators

// A row of pieces of a model on one worker, run forward and backward micro-batch by micro-batch.
//
// It is cut into segments. Autograd's graph never crosses a segment: each has inputs without a history, and backward
// goes from segment to segment. So a segment can be computed again instead of kept, its parameters can be elsewhere
// between uses, and the gradients of its weights can wait.
#pragma once
#include <torch/torch.h>

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "trireme/nn/chain.h"
#include "trireme/nn/dropout.h"

namespace trireme::parallel {

// Hears when a stage is about to use the parameters of a segment, and when it has done so.
class SegmentWatch {
 public:
  virtual ~SegmentWatch() = default;
  virtual void before_forward(std::size_t segment) = 0;
  virtual void after_forward(std::size_t segment) = 0;
  virtual void before_backward(std::size_t segment) = 0;
  // `last`: its gradients are complete, of all micro-batches of this step.
  virtual void after_backward(std::size_t segment, bool last) = 0;
};

struct StageOptions {
  std::size_t segment = 0;      // pieces in each; 0: all in one
  bool recompute = false;       // keep only the inputs of segments, and compute the rest again for backward
  bool input_gradients = true;  // false for the first stage: nobody wants those of the samples
};

class Stage {
 public:
  // Pieces first … last − 1 of `chain`, of `model`.
  Stage(const torch::nn::Module& model, const nn::Chain& chain, std::size_t first, std::size_t last,
        const StageOptions& options = {});

  // Null: nobody. Must outlive the stage.
  void set_watch(SegmentWatch* watch) { watch_ = watch; }

  // Called whenever a segment's activations are all there: after its forward, and after it was computed again.
  void set_probe(std::function<void()> probe) { probe_ = std::move(probe); }

  // Keeps under `micro_batch` what its backward needs. Results have no history.
  nn::Values forward(int micro_batch, nn::Values inputs);
  // From the gradients of what forward gave to those of what it was given (undefined where there is none). Those of
  // parameters are added to their .grad. `last`: no backward of this step comes after it.
  nn::Values backward(int micro_batch, nn::Values gradients, bool last);
  // The same in two halves: of inputs, then of parameters. Segments of one piece make this cheap.
  nn::Values backward_inputs(int micro_batch, nn::Values gradients);
  void backward_weights(int micro_batch, bool last);
  // Without keeping anything.
  nn::Values evaluate(nn::Values inputs);
  // Drops what was kept, of all micro-batches.
  void forget() { kept_.clear(); }
  std::size_t micro_batches_kept() const { return kept_.size(); }

  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }
  std::size_t segments() const { return segments_.size(); }
  // What a segment uses, under the model's names.
  const nn::Named& parameters(std::size_t segment) const { return segments_[segment].parameters; }
  // No parameter belongs to two segments.
  bool parameters_apart() const { return apart_; }

 private:
  struct Segment {
    std::size_t first, last;
    nn::Named parameters;
    std::vector<torch::Tensor> buffers;
    std::vector<torch::Tensor> learning;  // parameters that need a gradient
  };
  // What a segment keeps of a micro-batch.
  struct Kept {
    nn::Values inputs;     // leaves
    nn::Values outputs;    // with their history; empty while it is to be computed again
    nn::Values gradients;  // of the outputs, between the two halves of backward
    nn::RandomState random;
  };

  nn::Values run(const Segment& segment, const nn::Values& inputs) const;
  nn::Values leaves(const nn::Values& values, bool gradients) const;
  void compute_again(const Segment& segment, Kept& kept) const;
  nn::Values forward_segment(std::size_t k, nn::Values inputs, Kept& kept);

  const nn::Chain chain_;
  const std::size_t first_, last_;
  const StageOptions options_;
  std::vector<Segment> segments_;
  bool apart_ = true;
  SegmentWatch* watch_ = nullptr;
  std::function<void()> probe_;
  std::map<int, std::vector<Kept>> kept_;  // by micro-batch, one per segment
};

}  // namespace trireme::parallel

// One step's gradient where the model is on a mesh: the batch goes through the pipeline in micro-batches.
#pragma once
#include "trireme/train/learner/gradients.h"
#include "trireme/train/learner/mesh/mesh_model.h"

namespace trireme::train {

class MeshGradients : public Gradients {
 public:
  // `net` exchanges gradients over the data axis, or over nobody; null where the body shards.
  MeshGradients(const Config& config, Workload& work, MeshModel& model, DataParallel* net, Scale scale);

  StepOutcome compute(const data::Item& item, bool stop, const HoldUp& hold_up = {}) override;
  bool steps_itself() const override { return !model_.pipeline().synchronous(); }
  void drain() override;
  std::vector<BadGradient> bad_gradients() override { return bad_; }
  void clip(double most) override;

 private:
  Pipeline::Batch batch_of(const data::Item& item, bool stop);
  void tell(bool stop);
  void name_bad();

  const Config& config_;
  Workload& work_;
  MeshModel& model_;
  DataParallel* const net_;
  parallel::Sharded* const sharded_;
  GradientExchange& exchange_;  // one of the two
  const Scale scale_;
  double loss_ = 0;
  Score score_;
  double usual_s_ = 0;  // of a step's own compute
  std::vector<BadGradient> bad_;
  data::Batch nothing_;
  Pipeline::Batch last_;  // for what is still under way
};

}  // namespace trireme::train

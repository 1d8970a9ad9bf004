// Layers split over the workers of the mesh's tensor axis: each holds a part of their weights and computes a part of
// their outputs.
//
// The workers must have equal models, give them equal batches and, for dropout, equal seeds. Activations stay in parts
// as far as the algebra allows, and are exchanged where a layer needs more: docs/tensor-parallel.md says which.
// Weights that are not cut are whole on every worker, and so are their gradients.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/parallel/mesh.h"
#include "trireme/parallel/tensor/cut.h"

namespace trireme {

class TensorParallel {
 public:
  using Forward = std::function<torch::Tensor(torch::Tensor)>;
  // As tensor_parallel() below, over any group, for a model that is called in another way.
  TensorParallel(torch::nn::Module& model, const Forward& forward, Communicator& group, std::string_view rules,
                 const torch::Tensor& example);

  // Of what the model's forward gave, which may be in parts over the classes: the mean cross entropy, the number of
  // correct predictions, and the scores of all classes. Where a rule gathers the batch, `target` is of this worker's
  // samples, and loss and correct predictions are of all. Collective.
  // `smoothing`: the share of each target that is spread over all classes.
  torch::Tensor loss(const torch::Tensor& scores, const torch::Tensor& target, double smoothing = 0) const;
  std::int64_t correct(const torch::Tensor& scores, const torch::Tensor& target) const;
  torch::Tensor whole(const torch::Tensor& scores) const;
  // The targets that go with whole scores: `target`, or, where a rule gathers the batch, those of all workers.
  torch::Tensor all_targets(const torch::Tensor& target) const;

  // How every parameter and buffer that is not whole was cut, by its full name.
  const std::map<std::string, parallel::Cut>& cuts() const { return cuts_; }
  // Parameters whose gradient here is an addend of the gradient: those before a layer that gathers the batch; else
  // none.
  const std::vector<std::string>& partial() const { return partial_; }
  // Puts the sum over the group in the place of the gradients of partial(). Collective.
  void sum_partial_gradients();
  // The square of the norm of the whole model's gradient, after the above. Collective.
  double squared_gradient_norm() const;

  // Whether the scores are in parts.
  bool splits_scores() const { return !score_sizes_.empty(); }
  // One line for each layer that is split or gathers its input: "fc1=column, input whole".
  const std::vector<std::string>& report() const { return report_; }
  Communicator& group() const { return *group_; }

 private:
  Communicator* group_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
  std::map<std::string, parallel::Cut> cuts_;
  std::vector<std::string> partial_, report_;
  std::int64_t score_dim_ = -1;            // along which the scores are in parts
  std::vector<std::int64_t> score_sizes_;  // of the workers' parts; empty: they are whole
  bool gathers_batch_ = false;
};

// Splits the layers of `model` that the rules name, in place: parameters stay the same objects and become this
// worker's parts. `example`: a batch as the model will get, all but its first dimension; it is run once through the
// whole model and once through the split one, and their scores must agree. Throws ConfigError in one line that says
// what does not fit and what would; then the model is of no more use. Gradients are dropped. Collective over the
// mesh's tensor axis; the mesh must outlive the model's use. Optimizers and data_parallel() come after it.
template <class Model>
TensorParallel tensor_parallel(Model& model, Mesh& mesh, std::string_view rules, const torch::Tensor& example) {
  return {model, [&model](torch::Tensor input) { return model.forward(input); }, mesh.tensor(), rules, example};
}

}  // namespace trireme

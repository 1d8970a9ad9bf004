// The operators by which `trireme bench ops` knows the zoo's models, against the models themselves.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "trireme/cli/bench/ops/zoo_ops.h"
#include "trireme/models/model.h"

namespace trireme::models {
namespace zoo_ops_command_test {

// Elements of the weights that layers multiply with: matrices and filters, but those that are looked up alone.
int64_t weights_of(Model& model) {
  int64_t sum = 0;
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() >= 2 && item.key().find("position") == std::string::npos) sum += item.value().numel();
  }
  return sum;
}

int64_t weights_of(const bench::ZooOp& op) {
  if (const auto* it = std::get_if<ops::ConvShape>(&op.shape)) return op.layers * it->weight_size();
  if (const auto* it = std::get_if<bench::LinearShape>(&op.shape)) return op.layers * it->n * it->k;
  if (const auto* it = std::get_if<ops::RecurrentShape>(&op.shape)) {
    return op.layers * it->gates() * it->hidden * (it->input + it->hidden);
  }
  return 0;
}

TEST(ZooOps, HaveTheWeightsOfTheModel) {
  for (const bench::ZooModel& known : bench::zoo_models()) {
    const bool grey = known.name == "lenet" || known.name == "mlp-wide";
    const Shape shape = known.length > 0 ? Shape{{known.length}, 256, true}
                        : grey           ? Shape{{1, 28, 28}, 10, false}
                                         : Shape{{3, 32, 32}, 10, false};
    const auto model = make_model(known.name, shape);
    int64_t sum = 0, norms = 0, normalized = 0;
    for (const bench::ZooOp& op : known.ops(known.batch, known.length)) {
      sum += weights_of(op);
      if (op.family == "batch-norm" || op.family == "layer-norm") norms += op.layers;
    }
    EXPECT_EQ(sum, weights_of(*model)) << known.name;
    for (const auto& part : model->modules()) {
      const bool one =
          part->as<torch::nn::LayerNorm>() != nullptr || part->name().find("BatchNorm") != std::string::npos;
      normalized += one ? 1 : 0;
    }
    EXPECT_EQ(norms, normalized) << known.name;
  }
}

}  // namespace zoo_ops_command_test
}  // namespace trireme::models

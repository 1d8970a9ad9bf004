// Passes whose result depends on a whole row: ops/rows.
#include "trireme/cli/bench/ops/row_passes.h"
#include "trireme/ops/rows/rows.h"

namespace trireme::bench {
namespace {

std::vector<Contender> softmax_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<RowPassData>(of);
  const std::function<void()> forward = [it] {
    ops::softmax_forward(it->shape.rows, it->shape.channels, it->x.data(), it->y.data());
  };
  if (pass == ops::Pass::forward) return {{"fused", 0, forward}};
  forward();
  return {{"fused", 0, [it] {
             ops::softmax_backward(it->shape.rows, it->shape.channels, it->y.data(), it->d_y.data(), it->d_x.data());
           }}};
}

struct CrossEntropyData : RowPassData {
  explicit CrossEntropyData(const OpShape& of) : RowPassData(of) {
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int64_t>(i) % shape.channels;
  }
  ops::CrossEntropy loss{.rows = shape.rows, .classes = shape.channels};
  std::vector<int64_t> targets = std::vector<int64_t>(static_cast<std::size_t>(shape.rows));
  ops::AlignedFloats sums{shape.rows};
};

std::vector<Contender> cross_entropy_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<CrossEntropyData>(of);
  const std::function<void()> forward = [it] {
    ops::cross_entropy_forward(it->loss, it->x.data(), it->targets.data(), it->sums.data());
  };
  if (pass == ops::Pass::forward) return {{"fused", 4 * it->shape.rows, forward}};
  forward();
  return {{"fused", 0, [it] {
             ops::cross_entropy_backward(it->loss, it->x.data(), it->targets.data(), it->sums.data(),
                                         1 / static_cast<float>(it->shape.rows), it->d_x.data());
           }}};
}

struct LayerNormData : RowPassData {
  using RowPassData::RowPassData;
  ops::AlignedFloats gamma = some_numbers(shape.channels), beta = some_numbers(shape.channels);
  ops::AlignedFloats d_gamma{shape.channels}, d_beta{shape.channels}, mean{shape.rows}, rstd{shape.rows};
};

std::vector<Contender> layer_norm_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<LayerNormData>(of);
  const std::function<void()> forward = [it] {
    ops::layer_norm_forward(it->shape.rows, it->shape.channels, 1e-5f, it->x.data(), it->gamma.data(), it->beta.data(),
                            it->y.data(), it->mean.data(), it->rstd.data());
  };
  if (pass == ops::Pass::forward) return {{"fused", 8 * it->shape.rows, forward}};
  forward();
  return {{"fused", 0, [it] {
             ops::layer_norm_backward(it->shape.rows, it->shape.channels, it->x.data(), it->gamma.data(),
                                      it->mean.data(), it->rstd.data(), it->d_y.data(), it->d_x.data(),
                                      it->d_gamma.data(), it->d_beta.data());
           }}};
}

}  // namespace

// The largest, the difference to it, its exponential, the sum, the quotient.
OpFamily softmax_family() {
  return row_pass_family(
      "softmax", "1024x1024",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {5, 2, 4, 3});
      },
      softmax_contenders);
}

OpFamily cross_entropy_family() {
  return row_pass_family(
      "cross-entropy", "1024x256",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {4, 1, 3, 2});
      },
      cross_entropy_contenders);
}

// Moments four, scale and shift four.
OpFamily layer_norm_family() {
  return row_pass_family(
      "layer-norm", "1024x256",
      [](const OpShape& shape, ops::Pass pass) {
        return row_pass_work(shape, pass, {8, 2, 13, 3});
      },
      layer_norm_contenders);
}

}  // namespace trireme::bench

#include "trireme/train/evaluate.h"

#include <numeric>
#include <vector>

namespace trireme::train {
namespace {

void count(ByClass& by_class, const torch::Tensor& output, const torch::Tensor& target, std::int64_t classes) {
  auto all = target.flatten().to(torch::kCPU);
  auto right = all.masked_select(output.argmax(-1).eq(target).flatten().to(torch::kCPU));
  auto add = [&](std::vector<std::int64_t>& into, const torch::Tensor& labels) {
    into.resize(static_cast<std::size_t>(classes));
    auto counts = labels.bincount({}, classes);
    for (std::int64_t k = 0; k < classes; ++k) into[static_cast<std::size_t>(k)] += counts[k].item<std::int64_t>();
  };
  add(by_class.of, all);
  add(by_class.correct, right);
}

}  // namespace

Evaluation evaluate(models::Model& model, const data::Dataset& set, torch::Device device, Communicator* world,
                    ByClass* by_class) {
  constexpr std::int64_t kBatch = 256;
  const std::int64_t ranks = world ? world->size() : 1, rank = world ? world->rank() : 0;
  const std::int64_t begin = set.size() * rank / ranks, end = set.size() * (rank + 1) / ranks;
  torch::NoGradGuard no_grad;
  model.eval();
  std::vector<double> sums(4);  // loss, correct, of, samples
  std::vector<std::int64_t> indices;
  for (std::int64_t at = begin; at < end; at += kBatch) {
    indices.resize(std::min(kBatch, end - at));
    std::iota(indices.begin(), indices.end(), at);
    auto batch = set.get(indices);
    auto target = batch.target.to(device);
    auto output = model.forward(batch.input.to(device));
    auto [correct, of] = score_of(output, target);
    if (by_class) count(*by_class, output, target, set.shape().classes);
    sums[0] += loss_of(output, target).item<double>() * static_cast<double>(indices.size());
    sums[1] += correct;
    sums[2] += of;
    sums[3] += static_cast<double>(indices.size());
  }
  model.train();
  if (world) world->all_reduce(sums);
  return {sums[3] > 0 ? sums[0] / sums[3] : 0, sums[2] > 0 ? sums[1] / sums[2] : 0, static_cast<std::int64_t>(sums[3])};
}

}  // namespace trireme::train

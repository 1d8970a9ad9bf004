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

Evaluation Tally::evaluation() const {
  const auto [loss, correct, of, samples] = sums;
  return {samples > 0 ? loss / samples : 0, of > 0 ? correct / of : 0, static_cast<std::int64_t>(samples)};
}

Tally judge(const data::Dataset& set, std::int64_t first, std::int64_t last, const Judge& one_batch) {
  constexpr std::int64_t kBatch = 256;
  torch::NoGradGuard no_grad;
  Tally tally;
  std::vector<std::int64_t> indices;
  for (std::int64_t at = first; at < last; at += kBatch) {
    indices.resize(std::min(kBatch, last - at));
    std::iota(indices.begin(), indices.end(), at);
    const auto found = one_batch(set.get(indices));
    if (!found) continue;
    const auto samples = static_cast<double>(indices.size());
    tally.sums[0] += found->loss * samples;
    tally.sums[1] += found->score.correct;
    tally.sums[2] += found->score.of;
    tally.sums[3] += samples;
  }
  return tally;
}

Evaluation evaluate(models::Model& model, const data::Dataset& set, torch::Device device, Communicator* world,
                    ByClass* by_class) {
  const std::int64_t ranks = world ? world->size() : 1, rank = world ? world->rank() : 0;
  model.eval();
  auto tally = judge(set, set.size() * rank / ranks, set.size() * (rank + 1) / ranks, [&](const data::Batch& batch) {
    auto target = batch.target.to(device);
    auto output = model.forward(batch.input.to(device));
    if (by_class) count(*by_class, output, target, set.shape().classes);
    return Verdict{loss_of(output, target).item<double>(), score_of(output, target)};
  });
  model.train();
  if (world) world->all_reduce(std::span<double>(tally.sums));
  return tally.evaluation();
}

}  // namespace trireme::train

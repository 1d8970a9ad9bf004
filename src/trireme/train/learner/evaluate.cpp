#include "trireme/train/learner/evaluate.h"

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

Evaluation Tally::evaluation(const Objective& objective) const {
  const double samples = sums[1];
  return {samples > 0 ? sums[0] / samples : 0, objective.values(std::span(sums).subspan(2)),
          static_cast<std::int64_t>(samples)};
}

Tally judge(const Objective& objective, const data::Dataset& set, std::int64_t first, std::int64_t last,
            const Judge& one_batch) {
  constexpr std::int64_t kBatch = 256;
  torch::NoGradGuard no_grad;
  Tally tally{std::vector<double>(2 + objective.sums())};
  std::vector<std::int64_t> indices;
  for (std::int64_t at = first; at < last; at += kBatch) {
    indices.resize(std::min(kBatch, last - at));
    std::iota(indices.begin(), indices.end(), at);
    const auto loss = one_batch(set.get(indices), tally.of_metrics());
    if (!loss) continue;
    const auto samples = static_cast<double>(indices.size());
    tally.sums[0] += *loss * samples;
    tally.sums[1] += samples;
  }
  return tally;
}

Evaluation evaluate(models::Model& model, const Objective& objective, const data::Dataset& set, torch::Device device,
                    Communicator* world, ByClass* by_class) {
  const std::int64_t ranks = world ? world->size() : 1, rank = world ? world->rank() : 0;
  model.eval();
  auto tally = judge(objective, set, set.size() * rank / ranks, set.size() * (rank + 1) / ranks,
                     [&](const data::Batch& batch, std::span<double> sums) {
                       auto target = batch.target.to(device);
                       auto output = model.forward(batch.input.to(device));
                       if (by_class) count(*by_class, output, target, set.shape().classes);
                       objective.add(output, target, sums);
                       return (*objective.loss)(output, target).item<double>();
                     });
  model.train();
  if (world) world->all_reduce(std::span<double>(tally.sums));
  return tally.evaluation(objective);
}

}  // namespace trireme::train

// What a mesh cost, beside what it should: the bubble of the pipeline, and memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "trireme/parallel/pipeline/stage_parameters.h"
#include "trireme/train/learner/mesh/mesh_model.h"
#include "trireme/train/learner/recompute.h"

namespace trireme::train {

void MeshModel::begin_step() { rest_before_ = static_cast<double>(memory_.of(parallel::MemoryClass::rest).live); }

void MeshModel::note_memory(Optimizer& optimizer) {
  constexpr int kSettled = 3;  // steps; what lies between steps stays as it is then
  if (noted_++ >= kSettled) return;
  double weights = 0, gradients = 0, state = 0;
  if (sharded_) {
    weights = static_cast<double>(memory_.of(parallel::MemoryClass::parameters).live);
    gradients = static_cast<double>(memory_.of(parallel::MemoryClass::gradients).live);
  } else {
    for (const auto& parameter : part().parameters()) {
      weights += static_cast<double>(parameter.nbytes());
      if (parameter.grad().defined()) gradients += static_cast<double>(parameter.grad().nbytes());
    }
  }
  std::set<std::string> kinds;  // of state: "momentum"; counts of steps are no tensors
  for (const auto& [name, tensor] : optimizer.state()) {
    state += static_cast<double>(tensor.nbytes());
    if (tensor.numel() > 1) kinds.insert(name.substr(name.rfind('.') + 1));
  }
  optimizer_tensors_ = static_cast<int>(kinds.size());
  state_ = std::max(state_, weights + gradients + state);
}

nlohmann::json MeshModel::memory_numbers() {
  constexpr double kMega = 1e6;
  double held = 0;
  for (const auto& [name, tensor] : pipeline_->stage_parameters().parameters)
    held += static_cast<double>(tensor.numel());
  const parallel::MemoryFormula formula{.parameters = held,
                                        .optimizer_tensors = optimizer_tensors_,
                                        .shard = parallel::parse_shard_kind(config_.shard),
                                        .ranks = mesh_.shape().data};
  const auto& kind = pipelines::find_kind(config_.pipeline);
  const int chunks = kind.in_chunks ? static_cast<int>(config_.chunks) : 1;
  const int held_at_once =
      kind.most_held(mesh_.shape().pipe, static_cast<int>(micro_batches_of(config_)), chunks, mesh_.place().pipe);
  return {{"state_mb", state_ / kMega},
          {"state_formula_mb", formula.total() / kMega},
          {"activations_mb", activations_ / kMega},
          {"activations_formula_mb",
           parallel::activation_bytes(pieces_, recompute_of(config_.recompute), (held_at_once + chunks - 1) / chunks) /
               kMega}};
}

// What every part and every stage took, on each worker. Collective over the replica.
MeshModel::StageTimes MeshModel::stage_times(double seconds) {
  const int stages = mesh_.shape().pipe, stage = mesh_.place().pipe;
  const auto& usage = pipeline_->usage();
  const double steps = static_cast<double>(std::max<std::int64_t>(usage.steps, 1));
  const double per = 1 / (steps * static_cast<double>(micro_batches_of(config_)));
  // A sum in which every part, and behind them every stage, has a place of its own.
  constexpr std::size_t kNumbers = 3;
  const auto parts = static_cast<std::size_t>(pipeline_->parts());
  std::vector<double> all(kNumbers * (parts + static_cast<std::size_t>(stages)));
  if (mesh_.place().tensor == 0) {
    for (std::size_t chunk = 0; chunk < usage.forward_s.size(); ++chunk) {
      double* mine =
          all.data() + kNumbers * (chunk * static_cast<std::size_t>(stages) + static_cast<std::size_t>(stage));
      mine[0] = usage.forward_s[chunk] * per;
      mine[1] = usage.backward_s[chunk] * per;
      mine[2] = usage.weights_s[chunk] * per;
    }
    double* mine = all.data() + kNumbers * (parts + static_cast<std::size_t>(stage));
    mine[0] = usage.busy_s() / std::max(seconds, 1e-9);
    mine[1] = std::max(0.0, seconds - usage.busy_s()) / steps;
    mine[2] = usage.latency_s / steps;
  }
  mesh_.replica().all_reduce(all);
  StageTimes times;
  for (std::size_t part = 0; part < parts; ++part) {
    times.of_parts.forward.push_back(all[kNumbers * part]);
    times.of_parts.backward.push_back(all[kNumbers * part + 1]);
    times.of_parts.weights.push_back(all[kNumbers * part + 2]);
  }
  for (std::size_t k = parts; k < parts + static_cast<std::size_t>(stages); ++k) {
    times.busy += all[kNumbers * k] / stages;
    times.idle_ms.push_back(1e3 * all[kNumbers * k + 1]);
  }
  times.latency_ms = 1e3 * all[kNumbers * parts + 2];
  return times;
}

MeshModel::Report MeshModel::report(double seconds) {
  Report report;
  const int stages = mesh_.shape().pipe;
  auto& numbers = report.numbers;
  numbers = memory_numbers();
  report.lines.push_back(fmt::format(
      "memory of the first worker: weights, gradients and optimizer {:.1f} MB (by the formula {:.1f}), activations at "
      "most {:.1f} MB (by the formula {:.1f})",
      numbers["state_mb"].get<double>(), numbers["state_formula_mb"].get<double>(),
      numbers["activations_mb"].get<double>(), numbers["activations_formula_mb"].get<double>()));
  if (stages < 2) return report;
  const auto times = stage_times(seconds);
  const auto schedule = pipelines::make(config_.pipeline, stages, static_cast<int>(micro_batches_of(config_)),
                                        static_cast<int>(config_.chunks));
  const auto formula = pipelines::time_of(schedule, times.of_parts);
  numbers["bubble"] = 1 - times.busy;
  numbers["bubble_formula"] = formula.bubble;
  numbers["idle_ms"] = times.idle_ms;
  numbers["latency_ms"] = times.latency_ms;
  for (std::size_t part = 0; part < times.of_parts.forward.size(); ++part) {
    numbers["forward_ms"].push_back(1e3 * times.of_parts.forward[part]);
    numbers["backward_ms"].push_back(1e3 * (times.of_parts.backward[part] + times.of_parts.weights[part]));
  }
  report.lines.push_back(fmt::format(
      "pipeline: bubble {:.1f} % measured, {:.1f} % by the schedule with these stages' times; idle a step {:.1f} ms; "
      "a micro-batch is back after {:.1f} ms",
      100 * (1 - times.busy), 100 * formula.bubble, fmt::join(times.idle_ms, " / "), times.latency_ms));
  return report;
}

}  // namespace trireme::train

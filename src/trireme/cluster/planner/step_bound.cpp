#include "trireme/cluster/planner/step_bound.h"

#include <algorithm>
#include <cmath>

#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/compress/codecs.h"
#include "trireme/mesh/schedule.h"

namespace trireme::cluster {
namespace {

using What = sync::Exchange::What;

double fastest_of(const Cluster& cluster, int workers) {
  double most = 0;
  for (int worker = 0; worker < workers; ++worker) most = std::max(most, cluster.class_of(worker).compute);
  return most;
}

Legs without_coding(Legs legs) {
  legs.after_s = legs.coding_s = 0;
  for (auto& leg : legs.legs) leg.before_s = 0;
  return legs;
}

// Of a byte between neighbours: nobody has it there sooner.
double fastest_byte_s(const Network& network) {
  constexpr double kLong = 16 << 20;
  double least = HUGE_VAL;
  for (int rank = 1; rank < network.ranks(); ++rank) {
    least = std::min(least, (network.message(rank - 1, rank, kLong) - network.latency(rank - 1, rank)) / kLong);
  }
  return least;
}

}  // namespace

// Means, pushes and messages of the first worker's exchange plan, one after the other: they share its links. Buckets
// leave once a gradient is there, and all have come before the optimizer; what is waited for at once adds to compute.
double StepBound::exchange_s(const Candidate& candidate) const {
  if (network_.first(candidate.workers).shares_memory()) return 0;
  auto job = job_of(question_, candidate, {});
  job.coarse = true;
  Simulation simulation(network_, job);
  const double fastest = fastest_of(question_.cluster, candidate.workers);
  const double compute = (simulation.cost.forward + simulation.cost.backward + simulation.cost.optimizer) / fastest;
  const double ahead = (simulation.cost.forward + question_.profile.gradients.front().ready_s.p50) / fastest;
  double busy = 0, waited = 0;
  for (std::int64_t step = 0; step < simulation.steps; ++step) {
    for (const auto& one : job.strategy.exchange_plan(simulation.at(0, step + simulation.warm))) {
      const bool at_once = one.start == one.wait && one.later == 0;
      if (one.what == What::buckets) {
        const auto legs = simulation.coding.none() ? plain_legs(question_.profile.gradient_elements())
                                                   : without_coding(simulation.coding.whole());
        waited += std::max(0.0, ahead + simulation.clock.alone(legs) - compute);
      } else if (one.what == What::mean) {
        (at_once ? waited : busy) += simulation.clock.alone(without_coding(simulation.legs_of(one.of)));
      } else if (one.what == What::send) {
        busy += simulation.network.message(0, one.peer, simulation.bytes_of(one.of)) -
                simulation.network.latency(0, one.peer);
      } else if (one.what == What::push_pull && job.servers == 0) {
        const double bytes = simulation.coding.none() ? simulation.model_bytes : simulation.coding.message().bytes;
        waited += 2 * bytes * (candidate.workers - 1.0) / candidate.workers * fastest_byte_s(simulation.network);
      }
    }
  }
  const auto steps = static_cast<double>(simulation.steps);
  return std::max(compute + waited / steps, busy / steps);
}

double StepBound::bytes_s(const Candidate& candidate) {
  const mesh::MeshShape shape = candidate.on_mesh ? candidate.mesh : mesh::MeshShape{candidate.workers, 1, 1};
  if (shape.data == 1 || in_one_memory(candidate.workers)) return 0;
  auto [known, fresh] = sent_.try_emplace({candidate.strategy.text() + " " + candidate.compress, shape.data}, 0.0);
  if (fresh) known->second = sent_by_each(candidate, shape.data);
  const int distance = shape.pipe * shape.tensor;
  auto [byte, unknown] = byte_s_.try_emplace(distance, 0.0);
  if (unknown) byte->second = fastest_byte_s(network_.on({0, mesh::rank_of(shape, {1, 0, 0})}));
  // Codes of other shapes than the whole model's tensors may be smaller.
  constexpr double kOtherShapes = 0.25;
  const bool coded = distance > 1 && !compress::Choice::parse(candidate.compress).none();
  return known->second / distance * byte->second * (coded ? kOtherShapes : 1);
}

// In a step, whatever the algorithm.
double StepBound::sent_by_each(const Candidate& candidate, int ranks) const {
  constexpr std::int64_t kSteps = 64;
  const Coding coding(question_.profile, candidate.compress, "", ranks, question_.seed);
  const double model = static_cast<double>(question_.profile.gradient_bytes());
  double mean = 0;
  for (const auto& leg : coding.none() ? plain_legs(question_.profile.gradient_elements()).legs : coding.whole().legs) {
    const auto bytes = static_cast<double>(leg.count * leg.element_bytes);
    mean += leg.what == Collective::all_reduce ? 2 * (ranks - 1.0) / ranks * bytes : (ranks - 1.0) * bytes;
  }
  const double pushed = coding.none() ? model : coding.message().bytes;
  double bytes = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (const auto& one : candidate.strategy.exchange_plan({0, ranks, step, kSteps, kSteps, question_.seed})) {
      if (one.of == sync::Exchange::Of::number) continue;
      if (one.what == What::buckets || one.what == What::mean) bytes += mean;
      if (one.what == What::push_pull) bytes += 2 * pushed * (ranks - 1.0) / ranks;
      if (one.what == What::send) bytes += model;
    }
  }
  return bytes / kSteps;
}

// With t[s] a micro-batch's seconds in stage s, m of them, and c the share of t that must be done in earlier stages
// before stage s can begin and after it has ended: every stage needs m·t[s] + c·Σ t[j] for j < s, whose largest is
// least where all are equal, X: then t[s] = X/m · (1 − c/m)^s, and these add up to one micro-batch's seconds T/m:
//   X = c·T/m / (1 − (1 − c/m)^p)
// Besides, each of the p − 1 cuts passes on the whole batch, both ways; the largest of them is no smaller than the
// (p − 1)-th smallest that there is.
double StepBound::stages_s(const Candidate& candidate, double speed) {
  const auto& shape = candidate.mesh;
  auto [known, fresh] =
      stages_.try_emplace({candidate.schedule, shape.pipe, shape.tensor, candidate.micro_batches}, 0.0);
  if (!fresh) return known->second;
  const auto& kind = pipelines::find_kind(candidate.schedule);
  double all = 0, largest = 0, late = 0;
  std::vector<double> cuts;
  for (const auto& layer : question_.profile.layers) {
    const double parts = (layer.splittable ? shape.tensor : 1) * speed;
    const double own = (layer.forward_s.p50 + layer.backward_s.p50) / parts;
    all += own;
    late += (layer.forward_s.p50 + layer.backward_s.p50 * (kind.splits_backward ? 0.5 : 1)) / parts;
    largest = std::max(largest, own);
    cuts.push_back(static_cast<double>(layer.output_bytes));
  }
  double least = std::max(all / shape.pipe, largest);
  const double m = candidate.micro_batches, p = shape.pipe;
  if (p > 1 && all > 0) {
    const double c = late / all / (kind.in_chunks ? 2 : 1);
    least = std::max(least, c * all / m / (1 - std::pow(1 - c / m, p)));
    std::ranges::sort(cuts);
    cuts.resize(cuts.size() - 1);  // nothing is passed on by the last
    const auto& machine = network_.on({0, std::min(shape.tensor, network_.ranks() - 1)});
    const double byte = machine.ranks() == 2 ? fastest_byte_s(machine) : 0;
    least = std::max(least, cuts[std::min(cuts.size(), static_cast<std::size_t>(shape.pipe) - 1) - 1] * byte);
  }
  return known->second = least;
}

bool StepBound::in_one_memory(int workers) {
  auto [known, fresh] = one_memory_.try_emplace(workers, false);
  if (fresh) known->second = network_.first(workers).shares_memory();
  return known->second;
}

}  // namespace trireme::cluster

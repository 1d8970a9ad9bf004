// A model on a mesh: pieces by mesh/choice/mesh_choice.h, whose pipeline schedules are played by pipelines::time_of;
// replicas exchange gradients over the cluster's own network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cluster/sim/job/simulation.h"
#include "trireme/mesh/choice/hybrid_step.h"

namespace trireme::cluster {
namespace {

// Stages go at the pace of the slowest worker.
double slowest_speed(const Simulation& simulation) {
  double slowest = simulation.network.node(0).compute;
  for (int rank = 1; rank < simulation.ranks; ++rank) {
    slowest = std::min(slowest, simulation.network.node(rank).compute);
  }
  return slowest;
}

// Of a micro-batch: what a batch of any size takes is taken by each of them.
std::vector<mesh::PieceCost> pieces_of(const Profile& profile, int micro_batches, double speed) {
  std::vector<mesh::PieceCost> pieces;
  const double share = 1.0 / micro_batches;
  const auto seconds = [&](double whole, double start) {
    start = std::min(start, whole);
    return (start + (whole - start) * share) / speed;
  };
  for (const auto& layer : profile.layers) {
    pieces.push_back({layer.name, seconds(layer.forward_s.p50, layer.forward_start_s),
                      seconds(layer.backward_s.p50, layer.backward_start_s), layer.parameter_bytes,
                      static_cast<std::uint64_t>(static_cast<double>(layer.activation_bytes) * share),
                      static_cast<std::uint64_t>(static_cast<double>(layer.output_bytes) * share)});
  }
  return pieces;
}

// Between the first two workers of a mesh: neighbouring stages.
mesh::Machine machine_of(const Simulation& simulation) {
  constexpr double kLong = 1 << 20;
  const auto& network = simulation.network;
  mesh::Machine machine;
  machine.memory_bytes = network.node(0).worker_memory();
  if (simulation.ranks < 2) return machine;
  const int next = simulation.job.mesh.tensor;  // parts of a layer are neighbours, then the stages
  const int other = std::min(next, simulation.ranks - 1);
  machine.latency_s = network.latency(0, other);
  machine.bytes_per_s = kLong / std::max(1e-12, network.message(0, other, kLong) - machine.latency_s);
  return machine;
}

// Whose exchange is not a job of the replicas' own: scattered and gathered, or after every micro-batch.
bool sharded(const Simulation& simulation) {
  return simulation.job.saving.shard != mesh::Saving::Shard::none ||
         !pipelines::find_kind(simulation.job.schedule).synchronous;
}

// Of the first stage's replicas, as the network has it.
double all_reduce_s(const Simulation& simulation, double bytes) {
  const auto& shape = simulation.job.mesh;
  std::vector<int> replicas;
  for (int d = 0; d < shape.data; ++d) replicas.push_back(mesh::rank_of(shape, {d, 0, 0}));
  const Network axis = simulation.network.on(std::move(replicas));
  return ExchangeClock(axis, simulation.job.algorithm, {}, simulation.job.coarse)
      .alone(plain_legs(static_cast<std::size_t>(bytes) / sizeof(float)));
}

// In a step, by all workers: activations and their gradients over cuts, sums inside layers; of sharded replicas what
// they gather and scatter.
double bytes_sent(const Simulation& simulation, const mesh::MeshOption& option) {
  const auto& shape = simulation.job.mesh;
  const auto& layers = simulation.profile.layers;
  double bytes = sharded(simulation) ? 2.0 * (shape.data - 1) * simulation.model_bytes : 0;
  if (simulation.job.saving.shard == mesh::Saving::Shard::parameters) bytes *= 1.5;  // weights are gathered once more
  for (std::size_t end : option.split.ends) {
    if (end == layers.size()) continue;
    bytes += 2.0 * static_cast<double>(layers[end - 1].output_bytes) * shape.data * shape.tensor;
  }
  for (const auto& layer : layers) {
    if (layer.splittable) bytes += 2.0 * (shape.tensor - 1) * static_cast<double>(layer.tensor_bytes) * shape.data;
  }
  return bytes;
}

// A stage as its replicas see it: a worker whose forward is all until the last micro-batch's backward, whose gradients
// become ready piece by piece in that.
Profile profile_of_stage(const Simulation& simulation, const mesh::StageWork& stage, double speed) {
  Profile part = simulation.profile;
  part.layers.clear();
  part.gradients.clear();
  const auto all = [](double seconds) { return Quantiles{seconds, seconds, seconds}; };
  const double backward = (stage.done_s - stage.last_backward_s) * speed;
  double bytes = 0;
  for (double one : stage.parameter_bytes) bytes += one;
  const double optimizer = simulation.cost.optimizer * bytes / std::max(1.0, simulation.model_bytes);
  part.forward_s = all(stage.last_backward_s * speed);
  part.backward_s = all(backward);
  part.optimizer_s = all(optimizer);
  part.step_s = all(stage.done_s * speed + optimizer + simulation.cost.other);
  const auto count = stage.pieces.size();
  for (std::size_t k = count; k-- > 0;) {  // backward begins with the last
    const auto elements = static_cast<std::size_t>(stage.parameter_bytes[k] / sizeof(float));
    if (elements == 0) continue;
    const double ready = backward * static_cast<double>(count - k) / static_cast<double>(count);
    const auto rows = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(elements))));
    part.gradients.push_back({simulation.profile.layers[stage.pieces[k]].name, elements, rows, all(ready)});
  }
  return part;
}

// What the replicas of a stage do, as a job of their own on the data axis.
Simulated over_data_axis(const Simulation& simulation, const mesh::MeshOption& option, int stage, double speed) {
  const auto& shape = simulation.job.mesh;
  std::vector<int> replicas;
  for (int d = 0; d < shape.data; ++d) replicas.push_back(mesh::rank_of(shape, {d, stage, 0}));
  const auto part = profile_of_stage(simulation, option.stages[static_cast<std::size_t>(stage)], speed);
  if (part.gradients.empty()) return {};
  Job job = simulation.job;
  job.profile = &part;
  job.workers = 0;
  job.servers = 0;
  job.mesh = {};
  job.saving = {};
  job.micro_batches = 1;
  job.trace = job.accesses = false;
  return simulate(simulation.network.on(std::move(replicas)), job);
}

// The first stage's backward ends last, and the one with most weights sends longest.
std::set<int> stages_that_count(const mesh::MeshOption& option) {
  const auto bytes = [](const mesh::StageWork& stage) {
    return std::accumulate(stage.parameter_bytes.begin(), stage.parameter_bytes.end(), 0.0);
  };
  const auto most = std::ranges::max_element(option.stages, {}, bytes);
  return {0, static_cast<int>(most - option.stages.begin())};
}

void exchange_of_replicas(const Simulation& simulation, const mesh::MeshOption& option, double speed, Simulated& result,
                          double& sent) {
  const double computed = result.step_s;
  double longest = 0, own_sent = 0;
  for (int stage : stages_that_count(option)) {
    const auto part = over_data_axis(simulation, option, stage, speed);
    if (part.step_s == 0) continue;
    result.step_s = std::max(result.step_s, part.step_s);
    if (part.step_s < longest) continue;
    longest = part.step_s;
    result.breakdown_s.communication = part.breakdown_s.communication;
    result.exchange_s = part.exchange_s;
    result.stale = part.stale;
    result.tier = part.tier;
    const auto& bytes = option.stages[static_cast<std::size_t>(stage)].parameter_bytes;
    const double own = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const auto steps = static_cast<double>(std::max<std::size_t>(1, part.step_ends.size()));
    own_sent = static_cast<double>(part.bytes_sent) / steps * simulation.model_bytes / std::max(1.0, own);
  }
  sent += own_sent;
  result.why = fmt::format("{}, {} over data {}, {} of it not hidden", option.why, simulation.job.strategy.kind->name,
                           format_seconds(result.breakdown_s.communication), format_seconds(result.step_s - computed));
}

}  // namespace

Simulated simulate_mesh(Simulation& simulation) {
  const auto& job = simulation.job;
  const auto& profile = simulation.profile;
  if (profile.layers.empty()) {
    throw ConfigError(fmt::format("{}: it has no layers, so that nothing is known of stages", profile.file));
  }
  if (job.mesh.size() != simulation.ranks) {
    throw ConfigError(fmt::format("mesh {}: {} workers, not {}", to_text(job.mesh), job.mesh.size(), simulation.ranks));
  }
  const int batch = profile.batch * job.mesh.data;
  const double speed = slowest_speed(simulation);
  const auto pieces = pieces_of(profile, job.micro_batches, speed);
  std::vector<mesh::TensorCost> tensor_costs;
  for (const auto& layer : profile.layers) {
    tensor_costs.push_back({layer.splittable, layer.tensor_bytes / static_cast<std::uint64_t>(job.micro_batches)});
  }
  // What predict_mesh divides along data the profile has measured for one replica.
  auto global = pieces;
  for (auto& piece : global) {
    piece.forward_s *= job.mesh.data;
    piece.backward_s *= job.mesh.data;
    piece.kept_bytes *= static_cast<std::uint64_t>(job.mesh.data);
    piece.output_bytes *= static_cast<std::uint64_t>(job.mesh.data);
  }
  mesh::MeshQuestion question{global,       simulation.ranks, batch, job.micro_batches, machine_of(simulation),
                              tensor_costs, job.schedule,     2,     job.saving,        {}};
  double exchange = 0;  // the longest of a stage
  question.all_reduce = [&](double bytes, int replicas) {
    const double seconds = sharded(simulation) && replicas > 1 && bytes > 0 ? all_reduce_s(simulation, bytes) : 0;
    exchange = std::max(exchange, seconds);
    return seconds;
  };
  question.splits = job.splits.get();
  const auto option = mesh::predict_mesh(question, job.mesh);
  if (!option.possible) throw ConfigError(fmt::format("mesh {}: {}", to_text(job.mesh), option.why));
  Simulated result;
  const double share = 1.0 / (job.mesh.pipe * job.mesh.tensor) / speed;
  const double optimizer = simulation.cost.optimizer * share;
  const double compute = std::accumulate(pieces.begin(), pieces.end(), 0.0, [&](double sum, const auto& piece) {
    return sum + (piece.forward_s + piece.backward_s) * job.micro_batches;
  });
  result.step_s = option.step_s + optimizer + simulation.cost.other / speed;
  result.breakdown_s = {.forward = simulation.cost.forward * share,
                        .backward = simulation.cost.backward * share,
                        .communication = exchange,
                        .optimizer = optimizer,
                        .other = simulation.cost.other / speed};
  result.exchange_s.bandwidth = exchange;
  double sent = bytes_sent(simulation, option);
  if (job.mesh.data > 1 && !sharded(simulation)) exchange_of_replicas(simulation, option, speed, result, sent);
  result.breakdown_s.exposed = std::max(
      0.0, result.step_s - optimizer - simulation.cost.other / speed - compute / (job.mesh.pipe * job.mesh.tensor));
  result.memory_bytes = option.memory_bytes;
  if (result.why.empty()) result.why = option.why;
  result.step_ends.assign(1, result.step_s);
  result.samples_per_s = batch / result.step_s;
  const auto each = static_cast<std::uint64_t>(sent / simulation.ranks);
  result.workers.resize(static_cast<std::size_t>(simulation.ranks),
                        {compute / simulation.ranks, result.breakdown_s.exposed, 1, each});
  return result;
}

Simulated simulate_hybrid(Simulation& simulation) {
  const double speed = slowest_speed(simulation), workers = simulation.ranks;
  const auto pieces = pieces_of(simulation.profile, 1, speed);
  std::vector<mesh::TensorCost> tensor;
  double split = 0;  // bytes of weights, of one worker's parts
  for (const auto& layer : simulation.profile.layers) {
    tensor.push_back({layer.splittable, layer.tensor_bytes, layer.fully_connected});
    if (layer.fully_connected) split += static_cast<double>(layer.parameter_bytes) * (1 - 1 / workers);
  }
  const auto hybrid = mesh::hybrid_step(pieces, tensor, simulation.ranks, machine_of(simulation));
  const auto& cost = simulation.cost;
  const double optimizer = cost.optimizer * (1 - split / simulation.model_bytes) / speed;
  Simulated result;
  result.step_s = hybrid.step_s + optimizer + cost.other / speed;
  result.breakdown_s = {.forward = cost.forward / speed,
                        .backward = cost.backward / speed,
                        .communication = hybrid.gathered_s + hybrid.inside_s + hybrid.gradients_s,
                        .exposed = hybrid.gathered_s + hybrid.inside_s + hybrid.exposed_s,
                        .optimizer = optimizer,
                        .other = cost.other / speed};
  result.exchange_s.bandwidth = result.breakdown_s.communication;
  result.step_ends.assign(1, result.step_s);
  result.why = fmt::format("activations gathered {}, inside layers {}, gradients {}, {} of it not hidden",
                           format_seconds(hybrid.gathered_s), format_seconds(hybrid.inside_s),
                           format_seconds(hybrid.gradients_s), format_seconds(hybrid.exposed_s));
  result.workers.resize(static_cast<std::size_t>(simulation.ranks),
                        {(cost.forward + cost.backward) / speed, result.breakdown_s.exposed, 1, 0});
  return result;
}

}  // namespace trireme::cluster

#include "trireme/trainer/mesh_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/available_memory.h"
#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/median.h"
#include "trireme/base/text/size.h"
#include "trireme/mesh/choice/hybrid_step.h"
#include "trireme/mesh/choice/mesh_choice.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/parallel/memory_formula.h"
#include "trireme/report/prediction/cluster_fit.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/learner/device_clock.h"
#include "trireme/train/learner/recompute.h"
#include "trireme/train/learner/split.h"
#include "trireme/train/learner/tensor_costs.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {
namespace {

mesh::MeshShape told_mesh(const Config& config, int workers) {
  if (config.mesh.empty()) return {.data = workers};
  const auto shape = mesh::parse_mesh(config.mesh);
  if (shape.size() != workers) {
    throw ConfigError(
        fmt::format("--mesh {}: that is {} workers, and there are {}; make data × pipe × tensor {} or "
                    "change --workers",
                    config.mesh, shape.size(), workers, workers));
  }
  return shape;
}

// What the kernel says could be had, shared out over the workers of this host; of a GPU's nothing is known: 0.
std::uint64_t memory_of(const Config& config) {
  if (config.memory != "auto") return parse_size(config.memory, "--memory");
  if (config.device != "cpu") return 0;
  return available_memory().value_or(0) / static_cast<std::uint64_t>(std::max<std::int64_t>(1, config.workers));
}

// What a step takes besides its pieces: the loss of a micro-batch, and the optimizer.
struct Ends {
  double loss_forward_s = 0, loss_backward_s = 0, optimizer_s = 0;
};

struct Question {
  std::vector<mesh::PieceCost> pieces;
  Ends ends;
  std::vector<mesh::TensorCost> tensor;
  mesh::MeshQuestion asked;
  double samples = 1;  // that the pieces were measured with
};

// Pieces as they would have been measured with other micro-batches.
std::vector<mesh::PieceCost> scaled(std::vector<mesh::PieceCost> pieces, double by) {
  for (auto& piece : pieces) {
    piece.forward_s *= by;
    piece.backward_s *= by;
    for (auto* bytes : {&piece.kept_bytes, &piece.output_bytes}) {
      *bytes = static_cast<std::uint64_t>(by * static_cast<double>(*bytes));
    }
  }
  return pieces;
}

// Parameters stay as they are.
Ends measure_ends(const Config& config, Workload& work, const torch::Tensor& example) {
  constexpr int kRuns = 3;
  torch::Tensor output;
  const auto now = [&] { return device_seconds(work.device); };
  {
    torch::NoGradGuard no_grad;
    const bool training = work.model->is_training();
    work.model->eval();  // neither running statistics nor random numbers are to notice
    output = work.model->forward(example);
    work.model->train(training);
  }
  const auto target = first_targets(work, example.size(0));
  std::vector<double> forward, backward, optimizer;
  for (int run = 0; run <= kRuns; ++run) {  // the first warms up
    auto leaf = output.detach().clone().set_requires_grad(true);
    const double begin = now();
    auto loss = (*work.objective.loss)(leaf, target);
    const double middle = now();
    loss.backward();
    if (run == 0) continue;
    forward.push_back(middle - begin);
    backward.push_back(now() - middle);
  }
  NamedTensors copies;
  for (const auto& pair : work.model->named_parameters()) {
    auto copy = pair.value().detach().clone().set_requires_grad(true);
    copy.mutable_grad() = torch::zeros_like(copy);
    copies.emplace_back(pair.key(), copy);
  }
  auto stepping = make_optimizer(config.optimizer, copies, {optimizer_options(config, momentum_of(config)), {}});
  for (int run = 0; run <= kRuns; ++run) {
    const double begin = now();
    stepping->step(0);
    if (run > 0) optimizer.push_back(now() - begin);
  }
  return {median(forward), median(backward), median(optimizer)};
}

// The first worker measures, with nobody else at work, for a global batch of so many times --batch: micro-batches of
// that, or, where the mesh is known, those of one replica, as it will compute them.
Question ask(const Config& config, Workload& work, Communicator& world, std::int64_t replicas, bool open) {
  Question question;
  const std::int64_t batch = config.batch * config.accumulate * replicas;
  const auto chain = work.model->chain();
  const auto samples = std::clamp<std::int64_t>((open ? batch : batch / replicas) / micro_batches_of(config), 1, 256);
  question.samples = static_cast<double>(samples);
  question.ends = measure_ends(config, work, first_samples(work, samples));
  question.pieces = measure_pieces(*work.model, chain, first_samples(work, samples));
  question.tensor = tensor_costs(config, *work.model, chain, question.pieces);
  auto& asked = question.asked;
  asked.pieces = question.pieces;
  asked.tensor_costs = question.tensor;
  asked.workers = world.size();
  asked.batch = static_cast<int>(batch);
  asked.micro_batches = static_cast<int>(micro_batches_of(config));
  asked.machine.memory_bytes = memory_of(config);
  asked.machine.state_factor = state_factor(config);
  asked.kind = config.pipeline;
  asked.chunks = static_cast<int>(config.chunks);
  asked.saving = {parallel::parse_shard_kind(config.shard), static_cast<int>(recompute_of(config.recompute))};
  return question;
}

[[noreturn]] void nothing_fits(const Question& question, const std::string& what) {
  throw ConfigError(fmt::format("{}; what would fit: {}", what, fmt::join(mesh::what_would_fit(question.asked), "; ")));
}

// The first of none, every:1, every:2, … that fits.
int recompute_that_fits(Question& question, const mesh::MeshShape& shape) {
  mesh::MeshOption option;
  for (int every : {0, 1, 2, 4, 8}) {
    question.asked.saving.recompute_every = every;
    option = mesh::predict_mesh(question.asked, shape);
    if (option.fits) return every;
  }
  nothing_fits(question, fmt::format("--recompute auto: {}", option.why));
}

// Decides at the first worker: data, pipe, tensor, recompute.
std::array<std::int64_t, 4> decide(const Config& config, Question& question, Communicator& world, std::string& why) {
  mesh::MeshShape shape;
  if (config.mesh == "auto") {
    const auto options = mesh::rank_meshes(question.asked);
    const auto& best = options.front();
    if (!best.possible || !best.fits) nothing_fits(question, fmt::format("--mesh auto: {}", best.why));
    shape = best.shape;
    why = fmt::format("--mesh auto: {} of {} meshes, {:.1f} ms a step predicted; {}", mesh::to_text(shape),
                      options.size(), 1e3 * best.step_s, best.why);
  } else {
    shape = told_mesh(config, world.size());
    const auto option = mesh::predict_mesh(question.asked, shape);
    if (option.possible && !option.fits && config.recompute != "auto") {
      nothing_fits(question, fmt::format("--mesh {}: {}", mesh::to_text(shape), option.why));
    }
  }
  std::int64_t recompute = static_cast<std::int64_t>(recompute_of(config.recompute));
  if (config.recompute == "auto") recompute = recompute_that_fits(question, shape);
  return {shape.data, shape.pipe, shape.tensor, recompute};
}

// What a step on the chosen mesh will take, over this run's links.
void predict(const Config& config, Question& question, Communicator& world, const mesh::Machine& measured,
             ChosenMesh& chosen) {
  auto asked = question.asked;
  const auto cluster = cluster_here(config, world.transport(), world.size());
  const auto& wire = cluster.node_count() > 1 ? cluster.links.front().message : cluster.nodes.front().inside.message;
  asked.machine.latency_s = std::max(wire.start, measured.latency_s);
  asked.machine.bytes_per_s = measured.bytes_per_s;
  if (wire.slope > 0) asked.machine.bytes_per_s = std::min(1 / wire.slope, measured.bytes_per_s);
  if (config.mesh != "auto") asked.batch = static_cast<int>(config.batch * config.accumulate * chosen.shape.data);
  auto pieces = scaled(question.pieces, asked.batch / static_cast<double>(asked.micro_batches) / question.samples);
  const double replicas = config.mesh == "auto" ? 1 : chosen.shape.data;  // that predict_mesh divides by
  pieces.back().forward_s += question.ends.loss_forward_s * replicas;
  pieces.back().backward_s += question.ends.loss_backward_s * replicas;
  asked.pieces = pieces;
  asked.saving.recompute_every = static_cast<int>(recompute_of(chosen.config.recompute));
  const bool hybrid_step = mesh::find_hybrid(config.hybrid).gathers_batch;
  const double shares = hybrid_step ? 1 : chosen.shape.pipe * chosen.shape.tensor;
  if (hybrid_step) {
    const auto own = scaled(question.pieces, static_cast<double>(config.batch * config.accumulate) / question.samples);
    const auto hybrid = mesh::hybrid_step(own, question.tensor, world.size(), asked.machine);
    chosen.step_s = hybrid.step_s + question.ends.optimizer_s + question.ends.loss_forward_s * world.size() +
                    question.ends.loss_backward_s * world.size();
    return;
  }
  double served = 0;  // pushed to and pulled from servers once a stage is done, by the one that needs longest
  if (sync::Choice::parse(config.strategy).kind->needs_servers) {
    asked.all_reduce = [&](double bytes, int servers) {
      const double apart = (servers - 1.0) / servers;  // colocated: each serves its own share
      served = std::max(served, 2 * (asked.machine.latency_s + apart * bytes / asked.machine.bytes_per_s));
      return 0.0;
    };
  }
  const auto option = mesh::predict_mesh(asked, chosen.shape);
  if (option.possible) {
    chosen.step_s = option.step_s + served + question.ends.optimizer_s / shares;
  } else {
    chosen.why_not = option.why;
  }
}

}  // namespace

ChosenMesh choose_mesh(const Config& config, Workload& work, Communicator& world) {
  ChosenMesh chosen{.config = config};
  chosen.config.micro_batches = micro_batches_of(config);
  const bool open = config.mesh == "auto" || config.recompute == "auto" || config.memory != "auto";
  if (!open) chosen.shape = told_mesh(config, world.size());
  std::optional<Question> question;
  if (world.rank() == 0) question.emplace(ask(config, work, world, open ? world.size() : chosen.shape.data, open));
  if (open) {
    std::vector<std::int64_t> numbers(4);
    if (world.rank() == 0) std::ranges::copy(decide(config, *question, world, chosen.why), numbers.begin());
    world.broadcast(numbers);
    chosen.shape = {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2])};
    chosen.config.recompute = numbers[3] > 0 ? fmt::format("every:{}", numbers[3]) : "none";
  }
  const auto measured = measure_links(world);
  if (question) predict(config, *question, world, measured, chosen);
  if (config.mesh == "auto") {
    chosen.config.batch = std::max<std::int64_t>(1, config.batch * world.size() / chosen.shape.data);
  }
  chosen.config.mesh = mesh::to_text(chosen.shape);
  return chosen;
}

}  // namespace trireme::train

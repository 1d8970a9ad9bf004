#include "trireme/train/mesh_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trireme/base/available_memory.h"
#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/parallel/memory_formula.h"
#include "trireme/parallel/tensor_rules.h"
#include "trireme/plan/mesh_choice.h"
#include "trireme/train/recompute.h"
#include "trireme/train/split.h"

namespace trireme::train {
namespace {

plan::MeshShape told_mesh(const Config& config, int workers) {
  if (config.mesh.empty()) return {.data = workers};
  const auto shape = plan::parse_mesh(config.mesh);
  if (shape.size() != workers) {
    throw ConfigError(
        fmt::format("--mesh {}: that is {} workers, and there are {}; make data × pipe × tensor {} or "
                    "change --workers",
                    config.mesh, shape.size(), workers, workers));
  }
  return shape;
}

// What the kernel says could be had, shared out over the workers of this host.
std::uint64_t memory_of(const Config& config) {
  if (config.memory != "auto") return parse_size(config.memory, "--memory");
  return available_memory().value_or(0) / static_cast<std::uint64_t>(std::max<std::int64_t>(1, config.workers));
}

// Which pieces have layers that the rules split: their outputs are exchanged, forward and backward.
std::vector<plan::TensorCost> tensor_costs(const Config& config, torch::nn::Module& model, const nn::Chain& chain,
                                           std::span<const plan::PieceCost> costs) {
  std::vector<plan::TensorCost> found(chain.size());
  try {
    const auto text = config.tensor_rule == "auto" ? parallel::default_rules(config.model, model) : config.tensor_rule;
    for (const auto& [layer, kind] : parallel::TensorRules(text).kinds_in(model)) {
      for (std::size_t k = 0; k < chain.size(); ++k) {
        for (const auto& [name, tensor] : nn::parameters_of(model, chain, k, k + 1)) {
          if (name.starts_with(layer + ".")) found[k] = {true, 2 * costs[k].output_bytes};
        }
      }
    }
  } catch (const ConfigError&) {  // a model without rules has no tensor axis
    if (config.tensor_rule != "auto") throw;
  }
  return found;
}

struct Question {
  std::vector<plan::PieceCost> pieces;
  std::vector<plan::TensorCost> tensor;
  plan::MeshQuestion asked;
};

// The first worker measures, with nobody else at work.
Question ask(const Config& config, Workload& work, Communicator& world) {
  Question question;
  const auto workers = static_cast<std::int64_t>(world.size());
  const std::int64_t batch = config.batch * config.accumulate * workers;
  const auto chain = work.model->chain();
  const auto samples = std::clamp<std::int64_t>(batch / config.micro_batches, 1, 256);
  question.pieces = measure_pieces(*work.model, chain, first_samples(work, samples));
  question.tensor = tensor_costs(config, *work.model, chain, question.pieces);
  auto& asked = question.asked;
  asked.pieces = question.pieces;
  asked.tensor_costs = question.tensor;
  asked.workers = world.size();
  asked.batch = static_cast<int>(batch);
  asked.micro_batches = static_cast<int>(config.micro_batches);
  asked.machine.memory_bytes = memory_of(config);
  asked.machine.state_factor = state_factor(config);
  asked.kind = config.pipeline;
  asked.chunks = static_cast<int>(config.chunks);
  asked.saving = {parallel::parse_shard_kind(config.shard), static_cast<int>(recompute_of(config.recompute))};
  return question;
}

[[noreturn]] void nothing_fits(const Question& question, const std::string& what) {
  throw ConfigError(fmt::format("{}; what would fit: {}", what, fmt::join(plan::what_would_fit(question.asked), "; ")));
}

// The first of none, every:1, every:2, … that fits.
int recompute_that_fits(Question& question, const plan::MeshShape& shape) {
  plan::MeshOption option;
  for (int every : {0, 1, 2, 4, 8}) {
    question.asked.saving.recompute_every = every;
    option = plan::predict_mesh(question.asked, shape);
    if (option.fits) return every;
  }
  nothing_fits(question, fmt::format("--recompute auto: {}", option.why));
}

// Decides at the first worker: data, pipe, tensor, recompute.
std::array<std::int64_t, 4> decide(const Config& config, Workload& work, Communicator& world, std::string& why) {
  auto question = ask(config, work, world);
  plan::MeshShape shape;
  if (config.mesh == "auto") {
    const auto options = plan::rank_meshes(question.asked);
    const auto& best = options.front();
    if (!best.possible || !best.fits) nothing_fits(question, fmt::format("--mesh auto: {}", best.why));
    shape = best.shape;
    why = fmt::format("--mesh auto: {} of {} meshes, {:.1f} ms a step predicted; {}", plan::to_text(shape),
                      options.size(), 1e3 * best.step_s, best.why);
  } else {
    shape = told_mesh(config, world.size());
    const auto option = plan::predict_mesh(question.asked, shape);
    if (option.possible && !option.fits && config.recompute != "auto") {
      nothing_fits(question, fmt::format("--mesh {}: {}", plan::to_text(shape), option.why));
    }
  }
  std::int64_t recompute = static_cast<std::int64_t>(recompute_of(config.recompute));
  if (config.recompute == "auto") recompute = recompute_that_fits(question, shape);
  return {shape.data, shape.pipe, shape.tensor, recompute};
}

}  // namespace

ChosenMesh choose_mesh(const Config& config, Workload& work, Communicator& world) {
  ChosenMesh chosen{.config = config};
  const bool open = config.mesh == "auto" || config.recompute == "auto" || config.memory != "auto";
  if (!open) {
    chosen.shape = told_mesh(config, world.size());
  } else {
    std::vector<std::int64_t> numbers(4);
    if (world.rank() == 0) std::ranges::copy(decide(config, work, world, chosen.why), numbers.begin());
    world.broadcast(numbers);
    chosen.shape = {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2])};
    chosen.config.recompute = numbers[3] > 0 ? fmt::format("every:{}", numbers[3]) : "none";
  }
  if (config.mesh == "auto") {
    chosen.config.batch = std::max<std::int64_t>(1, config.batch * world.size() / chosen.shape.data);
  }
  chosen.config.mesh = plan::to_text(chosen.shape);
  return chosen;
}

}  // namespace trireme::train

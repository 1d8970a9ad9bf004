#include "trireme/train/learner/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/median.h"
#include "trireme/base/text/size.h"
#include "trireme/optim/optimizers.h"
#include "trireme/parallel/pipeline/pipeline.h"
#include "trireme/parallel/pipeline/stage.h"
#include "trireme/parallel/pipeline/stage_parameters.h"
#include "trireme/parallel/tensor_memory.h"
#include "trireme/train/learner/device_clock.h"

namespace trireme::train {
namespace {

std::uint64_t bytes_of(const nn::Values& values) {
  std::uint64_t bytes = 0;
  for (const auto& value : values) bytes += value.nbytes();
  return bytes;
}

std::string names_at(const nn::Chain& chain, const std::vector<std::size_t>& starts) {
  std::vector<std::string> names;
  for (auto at : starts) names.push_back(chain[at].name);
  return fmt::format("{}", fmt::join(names, " | "));
}

// Afterwards running statistics are as they were: they are not to see what is only tried.
class UntouchedBuffers {
 public:
  explicit UntouchedBuffers(const torch::nn::Module& model) : buffers_(model.buffers()) {
    for (const auto& buffer : buffers_) before_.push_back(buffer.clone());
  }
  ~UntouchedBuffers() {
    torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < buffers_.size(); ++k) buffers_[k].copy_(before_[k]);
  }
  UntouchedBuffers(const UntouchedBuffers&) = delete;
  UntouchedBuffers& operator=(const UntouchedBuffers&) = delete;

 private:
  std::vector<torch::Tensor> buffers_, before_;
};

}  // namespace

mesh::Machine measure_links(Communicator& line) {
  constexpr int kRounds = 5;
  constexpr std::size_t kLarge = 1 << 20;
  std::array<double, 2> seconds{};
  std::size_t which = 0;
  for (std::size_t bytes : {std::size_t{8}, kLarge}) {
    std::vector<std::uint8_t> buffer(bytes);
    std::vector<double> times;
    for (int round = 0; round < kRounds && line.rank() < 2 && line.size() > 1; ++round) {
      const double begin = now_seconds();
      line.rank() == 0 ? line.send(buffer, 1) : line.recv(buffer, 0);
      line.rank() == 0 ? line.recv(buffer, 1) : line.send(buffer, 0);
      times.push_back((now_seconds() - begin) / 2);
    }
    seconds[which++] = times.empty() ? 0 : median(times);
  }
  mesh::Machine machine;
  machine.latency_s = seconds[0];
  machine.bytes_per_s = kLarge / std::max(1e-9, seconds[1] - seconds[0]);
  return machine;
}

double state_factor(const Config& config) {
  const auto& kind = find_optimizer(config.optimizer);
  if (!kind.make) return 4;
  const auto rule = optim::make_rule(kind, optimizer_options(config, momentum_of(config)));
  return 2 + static_cast<double>(rule->quantities().size());
}

std::vector<TimedPiece> time_pieces(torch::nn::Module& model, const nn::Chain& chain, const torch::Tensor& example,
                                    int runs) {
  const UntouchedBuffers untouched(model);
  const auto now = [device = example.device()] { return device_seconds(device); };
  std::vector<TimedPiece> pieces;
  nn::Values inputs{example};
  for (std::size_t k = 0; k < chain.size(); ++k) {
    parallel::Stage stage(model, chain, k, k + 1, {.input_gradients = k > 0});
    TimedPiece piece;
    nn::Values outputs;
    for (int run = 0; run <= runs; ++run) {  // the first warms up
      parallel::MemoryWatch memory;
      const double begin = now();
      outputs = stage.forward(0, inputs);
      const double middle = now();
      piece.cost.kept_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, memory.all().live));
      nn::Values gradients;
      for (const auto& output : outputs) gradients.push_back(torch::zeros_like(output));
      const double start = now();
      stage.backward(0, gradients, true);
      if (run == 0) continue;
      piece.forward.push_back(middle - begin);
      piece.backward.push_back(now() - start);
    }
    piece.cost.name = chain[k].name;
    piece.cost.forward_s = median(piece.forward);
    piece.cost.backward_s = median(piece.backward);
    for (const auto& [name, tensor] : stage.parameters(0)) piece.cost.parameter_bytes += tensor.nbytes();
    piece.cost.output_bytes = bytes_of(outputs);
    pieces.push_back(std::move(piece));
    inputs = outputs;
  }
  for (auto& parameter : model.parameters()) parameter.mutable_grad() = torch::Tensor();
  return pieces;
}

std::vector<mesh::PieceCost> measure_pieces(torch::nn::Module& model, const nn::Chain& chain,
                                            const torch::Tensor& example) {
  constexpr int kRuns = 3;
  std::vector<mesh::PieceCost> costs;
  for (auto& piece : time_pieces(model, chain, example, kRuns)) costs.push_back(std::move(piece.cost));
  return costs;
}

std::vector<parallel::PieceMemory> memory_of_pieces(torch::nn::Module& model, const nn::Chain& chain,
                                                    const torch::Tensor& example) {
  const auto rows = std::min<std::int64_t>(2, example.size(0));
  const double scale = static_cast<double>(example.size(0)) / static_cast<double>(rows);
  const UntouchedBuffers untouched(model);
  std::vector<parallel::PieceMemory> found;
  nn::Values inputs{example.narrow(0, 0, rows)};
  for (std::size_t k = 0; k < chain.size(); ++k) {
    parallel::Stage stage(model, chain, k, k + 1, {.input_gradients = k > 0});
    parallel::MemoryWatch memory;
    auto outputs = stage.forward(0, inputs);
    found.push_back({scale * static_cast<double>(memory.all().live), scale * static_cast<double>(bytes_of(inputs))});
    inputs = outputs;
  }
  return found;
}

ChosenSplit split_of(const Config& config, torch::nn::Module& model, const nn::Chain& chain, Mesh& mesh,
                     const torch::Tensor& example) {
  const auto& kind = pipelines::find_kind(config.pipeline);
  const int stages = mesh.shape().pipe;
  const auto parts = static_cast<std::size_t>(stages * (kind.in_chunks ? static_cast<int>(config.chunks) : 1));
  if (parts == 1) return {{0}, ""};
  if (config.split != "auto") {
    auto starts = parallel::named_starts(chain, config.split, parts);
    return {starts, "stages begin at " + names_at(chain, starts)};
  }
  if (chain.size() < parts) {
    throw ConfigError(fmt::format("--mesh pipe={}: model {} has {} pieces to share out, not {}; at most pipe={}{}",
                                  stages, config.model, chain.size(), parts, chain.size() / (parts / stages),
                                  kind.in_chunks ? ", or fewer --chunks" : ""));
  }
  // Everyone measures: parts of a layer compute together. The first one's figures count.
  auto costs = measure_pieces(model, chain, example);
  auto machine = measure_links(mesh.pipe());
  machine.state_factor = state_factor(config);
  if (config.memory != "auto") machine.memory_bytes = parse_size(config.memory, "--memory");
  std::vector<double> numbers;
  for (const auto& cost : costs) numbers.insert(numbers.end(), {cost.forward_s, cost.backward_s});
  numbers.insert(numbers.end(), {machine.latency_s, machine.bytes_per_s});
  mesh.world().broadcast(numbers);
  for (std::size_t k = 0; k < costs.size(); ++k) {
    costs[k].forward_s = numbers[2 * k];
    costs[k].backward_s = numbers[2 * k + 1];
  }
  machine.latency_s = numbers[numbers.size() - 2];
  machine.bytes_per_s = numbers.back();
  // With few micro-batches stages hardly work at once, and any cut is as good: one that balances serves memory.
  const int in_turn = std::max(static_cast<int>(micro_batches_of(config)), 2 * stages);
  const auto best = mesh::best_timed_split(costs, stages, in_turn, kind, machine, static_cast<int>(config.chunks));
  std::vector<std::size_t> starts{0};
  starts.insert(starts.end(), best.ends.begin(), best.ends.end() - 1);
  return {starts, fmt::format("stages begin at {} (measured; the slowest takes {:.2g} ms a micro-batch)",
                              names_at(chain, starts), 1e3 * best.slowest_s)};
}

}  // namespace trireme::train

#include "trireme/cli/bench/combination.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/base/mix.h"
#include "trireme/collective/schedule.h"
#include "trireme/mesh/schedule.h"
#include "trireme/optim/optimizers.h"
#include "trireme/sync/strategies.h"

namespace trireme::bench {
namespace {

using Where = sync::StrategyKind::Exact::Where;

// Random numbers that are the same on every machine.
class EqualDraws {
 public:
  explicit EqualDraws(std::uint64_t seed) : state_(seed) {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(mixed(state_++) % static_cast<std::uint64_t>(end));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <typename Values>
  auto of(const Values& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(values))))];
  }
  std::int64_t of(std::initializer_list<std::int64_t> values) { return std::data(values)[below(std::ssize(values))]; }
  std::string word(std::initializer_list<const char*> words) { return std::data(words)[below(std::ssize(words))]; }

 private:
  std::uint64_t state_;
};

struct EqualModel {
  const char *name, *data;
  Flags flags;
  bool normalizes = false;  // over the whole batch, so that nothing may cut it but --sync-batch-norm
  bool drops = false;       // by a mask for each micro-batch, so that all ways must have the same ones
};

const std::vector<EqualModel>& equal_model_rows() {
  static const std::vector<EqualModel> rows{
      {"mlp", "synthetic:1x4x8,classes=4", {"--model", "mlp", "--model-arg", "width=64"}},
      {"mlp-dropout",
       "synthetic:1x4x8,classes=4",
       {"--model", "mlp", "--model-arg", "width=64", "--model-arg", "dropout=0.2"},
       false,
       true},
      {"lenet", "synthetic:1x16x16,classes=4", {"--model", "lenet"}},
      {"resnet",
       "synthetic:3x8x8,classes=4",
       {"--model", "resnet32", "--model-arg", "depth=8", "--model-arg", "width=4"},
       true},
  };
  return rows;
}

// What is drawn before the ways, and what they must heed.
struct Training {
  bool even = false;   // every step has the whole batch
  bool plain = false;  // sgd without momentum and clipping
  bool normalizes = false, drops = false;
  std::int64_t batch = 0;

  // Twelve micro-batches are a whole number of them for each of 1 to 4 workers and 1 to 3 backward passes.
  std::int64_t dropping() const { return batch / 12; }
};

void add(Flags& flags, std::initializer_list<std::string> more) { flags.insert(flags.end(), more); }

// Where a step is divided by the gradient's own size, an element whose gradient is rounding and nothing else takes a
// whole step, whichever way, with the usual tiny epsilon. With one above rounding such optimizers are as smooth as the
// others.
Flags smooth(const optim::OptimizerKind& kind) {
  Flags flags{"--optimizer", std::string(kind.name), "--lr", kind.epsilon ? "0.003" : kind.trust ? "1" : "0.03"};
  if (kind.epsilon) flags.insert(flags.end(), {"--epsilon", "0.001"});
  if (kind.trust) flags.insert(flags.end(), {"--trust", "0.01"});
  return flags;
}

// Each optimizer, and with what else it takes. Centered rmsprop is left out: a variance is a difference of two sums,
// and their rounding is as large as it is.
std::vector<Flags> optimizer_rows(const Flags& plain) {
  std::vector<Flags> rows{plain, plain};
  for (const auto& kind : optim::optimizers()) {
    const auto flags = smooth(kind);
    const auto with = [&](std::initializer_list<std::string> more) {
      rows.push_back(flags);
      rows.back().insert(rows.back().end(), more);
    };
    with({});
    if (kind.linear) with({"--nesterov"});
    if (kind.mean_square) with({"--momentum", "0.8"});
    if (kind.accumulates) with({"--lr-decay", "0.1", "--initial-accumulator", "0.01"});
  }
  return rows;
}

void draw_optimizer(EqualDraws& draws, Flags& flags, Training& training) {
  static const Flags plain{"--optimizer", "sgd", "--lr", "0.05", "--momentum", "0"};
  static const std::vector<Flags> rows = optimizer_rows(plain);
  const auto drawn = draws.of(rows);
  flags.insert(flags.end(), drawn.begin(), drawn.end());
  training.plain = drawn == plain;
  if (draws.one_in(3)) add(flags, {"--weight-decay", "0.01"});
  if (draws.one_in(3)) {
    add(flags, {"--clip", "0.3"});
    training.plain = false;
  }
}

// A strategy that must be exact for such a training.
std::string draw_exact(EqualDraws& draws, const Training& training, bool servers_too) {
  std::vector<std::string> able;
  for (const auto& kind : sync::strategies()) {
    if (kind.needs_servers && !servers_too) continue;
    for (const auto& exact : kind.exact) {
      if (exact.where != Where::always && !training.even) continue;
      if (exact.where == Where::plain_sgd && !training.plain) continue;
      able.push_back(exact.settings.empty() ? std::string(kind.name) : fmt::format("{}:{}", kind.name, exact.settings));
    }
  }
  return draws.of(able);
}

const sync::StrategyKind& kind_of(const std::string& strategy) { return *sync::Choice::parse(strategy).kind; }

// Whether there are buckets to plan.
bool has_buckets(const std::string& strategy) {
  for (const auto& one :
       sync::Choice::parse(strategy).exchange_plan({.ranks = 2, .steps_per_epoch = 1, .total_steps = 1})) {
    if (one.what == sync::Exchange::What::buckets) return true;
  }
  return false;
}

std::string draw_algorithm(EqualDraws& draws) {
  if (draws.one_in(2)) return "auto";
  return std::string(draws.of(algorithms_for(Collective::all_reduce))->name);
}

void draw_launch(EqualDraws& draws, Flags& flags) {
  if (draws.one_in(2)) {
    add(flags, {"--launch", "threads"});
  } else {
    add(flags, {"--launch", "processes", "--transport", draws.word({"shm", "tcp"})});
  }
}

// How batches are cut: of the batch of all, what is left for each of the backward passes.
void draw_batches(EqualDraws& draws, Flags& flags, const Training& training, std::int64_t replicas, bool micro) {
  const auto of_replica = training.batch / replicas;
  std::int64_t accumulate = training.normalizes || draws.one_in(2) ? 1 : draws.of({1, 2, 3});
  while (of_replica % accumulate != 0) --accumulate;
  const auto batch = of_replica / accumulate;
  add(flags, {"--batch", std::to_string(batch), "--accumulate", std::to_string(accumulate)});
  if (training.drops) return add(flags, {"--micro-batch", std::to_string(training.dropping())});
  if (!micro || training.normalizes || !draws.one_in(3)) return;
  std::vector<std::int64_t> divisors;
  for (std::int64_t size = 1; size <= batch; ++size) {
    if (batch % size == 0) divisors.push_back(size);
  }
  add(flags, {"--micro-batch", std::to_string(draws.of(divisors))});
}

Flags draw_replicas(EqualDraws& draws, const Training& training) {
  Flags flags;
  const auto workers = draws.of({1, 2, 2, 3, 4});
  const auto strategy =
      training.normalizes ? std::string(sync::strategies().front().name) : draw_exact(draws, training, true);
  add(flags, {"--workers", std::to_string(workers), "--strategy", strategy});
  if (training.normalizes) add(flags, {"--sync-batch-norm"});
  draw_launch(draws, flags);
  draw_batches(draws, flags, training, workers, true);
  if (kind_of(strategy).needs_servers) {
    add(flags, {"--servers", draws.word({"colocated", "1", "2"}), "--replicas", draws.word({"1", "1", "2"})});
    return flags;
  }
  add(flags, {"--lanes", draws.word({"1", "2", "3"}), "--algorithm", draw_algorithm(draws)});
  if (has_buckets(strategy)) {
    add(flags, {"--bucket-plan", draws.word({"cap:0.01", "tensor", "one", "mgwfbp", "optimal"}), "--exchange",
                draws.word({"auto", "background", "inline"})});
  }
  return flags;
}

Flags draw_mesh(EqualDraws& draws, const Training& training) {
  constexpr std::array<std::array<int, 3>, 9> kShapes{
      {{1, 2, 1}, {1, 1, 2}, {2, 1, 1}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}, {3, 1, 1}, {4, 1, 1}, {1, 3, 1}}};
  const auto [data, pipe, tensor] = draws.of(kShapes);
  std::vector<const pipelines::PipelineKind*> synchronous;
  for (const auto& kind : pipelines::kinds()) {
    if (kind.synchronous) synchronous.push_back(&kind);
  }
  const auto& kind = *draws.of(synchronous);
  Flags flags{"--mesh", fmt::format("data={},pipe={},tensor={}", data, pipe, tensor)};
  add(flags, {"--pipeline", std::string(kind.name), "--micro-batches", draws.word({"1", "2", "3", "4"})});
  if (kind.in_chunks) add(flags, {"--chunks", "2"});
  draw_launch(draws, flags);
  draw_batches(draws, flags, training, data, false);
  if (draws.one_in(2)) add(flags, {"--shard", draws.word({"optimizer", "gradients", "parameters"})});
  if (draws.one_in(3)) add(flags, {"--recompute", draws.word({"every:1", "every:2"})});
  if (draws.one_in(2)) add(flags, {"--strategy", draw_exact(draws, training, true)});
  return flags;
}

Flags draw_hybrid(EqualDraws& draws, const Training& training) {
  const auto workers = draws.of({2, 3, 4});
  Flags flags{"--hybrid", "alexnet", "--workers", std::to_string(workers)};
  draw_launch(draws, flags);
  draw_batches(draws, flags, training, workers, false);
  return flags;
}

Flags draw_way(EqualDraws& draws, const Training& training) {
  if (training.normalizes || training.drops) return draw_replicas(draws, training);
  const auto family = draws.below(8);
  return family < 4   ? draw_replicas(draws, training)
         : family < 7 ? draw_mesh(draws, training)
                      : draw_hybrid(draws, training);
}

// Not a multiple of the batch, so that the last step of an epoch is short, or so few that some worker has none.
std::int64_t draw_samples(EqualDraws& draws, const Training& training) {
  if (training.even) return training.batch * draws.of({2, 4, 5});
  return draws.one_in(2) ? 237 : training.batch + 1 + draws.below(3 * training.batch);
}

// What a resumed run is told where only the run before it had been told something else: the defaults of train.
Flags taken_back(const Flags& before, const Flags& now) {
  static const std::vector<std::pair<std::string_view, std::string_view>> defaults{
      {"strategy", sync::strategies().front().name},
      {"servers", "colocated"},
      {"replicas", "1"},
      {"lanes", "1"},
      {"algorithm", "auto"},
      {"bucket-plan", "optimal"},
      {"exchange", "auto"},
      {"transport", "auto"},
      {"micro-batch", "0"},
      {"mesh", ""},
      {"pipeline", "1f1b"},
      {"micro-batches", "0"},
      {"chunks", "2"},
      {"shard", "none"},
      {"recompute", "none"},
      {"hybrid", "none"}};
  Flags flags;
  for (const auto& [name, value] : defaults) {
    const auto flag = fmt::format("--{}", name);
    if (std::ranges::find(before, flag) == before.end() || std::ranges::find(now, flag) != now.end()) continue;
    add(flags, {"--set", fmt::format("{}={}", name, value)});
  }
  return flags;
}

// A run that waits for nobody takes seconds.
Flags train_command(const Flags& training, std::int64_t steps) {
  Flags flags{"train", "--threads", "1", "--epochs", "1000", "--trace-steps", "0", "--timeout", "20", "--quiet"};
  flags.insert(flags.end(), training.begin(), training.end());
  add(flags, {"--steps", std::to_string(steps)});
  return flags;
}

}  // namespace

Flags Combination::reference(const std::string& out) const {
  auto flags = train_command(training, steps);
  add(flags, {"--workers", "1", "--launch", "threads", "--batch", std::to_string(batch), "--out", out});
  if (micro_batch > 0) add(flags, {"--micro-batch", std::to_string(micro_batch)});
  return flags;
}

Flags Combination::command(std::size_t k, const std::string& out) const {
  const bool resumes = k > 0;
  Flags flags = resumes ? Flags{"train", "--quiet", "--steps", std::to_string(steps)}
                        : train_command(training, stop > 0 ? stop : steps);
  flags.insert(flags.end(), ways[k].begin(), ways[k].end());
  if (resumes) {
    const auto back = taken_back(ways[k - 1], ways[k]);
    flags.insert(flags.end(), back.begin(), back.end());
  }
  add(flags, {resumes ? "--resume" : "--out", out});
  return flags;
}

const std::vector<std::string>& equal_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& row : equal_model_rows()) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

// Batch normalization spreads rounding over a batch, and where it moves one of many activations across ReLU's corner
// gradients jump: such models are tried where they are asked for.
const std::vector<std::string>& smooth_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& row : equal_model_rows()) {
      if (!row.normalizes) all.emplace_back(row.name);
    }
    return all;
  }();
  return names;
}

Combination draw_combination(std::uint64_t seed, std::uint64_t number, const std::vector<std::string>& models) {
  EqualDraws draws(mixed(mixed(seed) + number));
  Combination made{.seed = seed, .number = number};
  const auto wanted = draws.of(models.empty() ? smooth_models() : models);
  const auto& model = *std::ranges::find(equal_model_rows(), wanted, &EqualModel::name);
  Training training{.even = draws.one_in(3) || model.drops,
                    .normalizes = model.normalizes,
                    .drops = model.drops,
                    .batch = draws.of({12, 24, 48})};
  made.batch = training.batch;
  if (training.drops) made.micro_batch = training.dropping();
  made.training = model.flags;
  add(made.training, {"--data", fmt::format("{},samples={},test=16", model.data, draw_samples(draws, training))});
  draw_optimizer(draws, made.training, training);
  made.steps = 6 + draws.below(10);
  const bool resumes = draws.one_in(3);
  // Where a run stops by --steps, schedules that are told the number of all steps would be others.
  add(made.training, {"--schedule", resumes ? draws.word({"constant", "step:1,0.5"})
                                            : draws.word({"constant", "step:1,0.5", "cosine", "one-cycle"})});
  add(made.training, {"--seed", std::to_string(1 + draws.below(1000))});
  made.ways.push_back(draw_way(draws, training));
  if (resumes) {
    made.stop = 1 + draws.below(made.steps - 1);
    made.ways.push_back(draw_way(draws, training));
  }
  return made;
}

}  // namespace trireme::bench

#include "trireme/mesh/choice/mesh_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/base/text/bytes_text.h"
#include "trireme/base/text/size.h"
#include "trireme/mesh/timing.h"

namespace trireme::mesh {
namespace {

using pipelines::Action;

void check(const MeshQuestion& question) {
  if (question.workers < 1 || question.batch < 1 || question.micro_batches < 1 || question.pieces.empty()) {
    throw ConfigError("mesh: there must be a piece, a worker, a sample and a micro-batch at least");
  }
  if (!question.tensor_costs.empty() && question.tensor_costs.size() != question.pieces.size()) {
    throw ConfigError(
        fmt::format("mesh: {} tensor costs for {} pieces", question.tensor_costs.size(), question.pieces.size()));
  }
}

// One mesh, from costs on one worker to a step of all.
class Prediction {
 public:
  Prediction(const MeshQuestion& question, const MeshShape& shape)
      : question_(question), kind_(pipelines::find_kind(question.kind)), machine_(question.machine) {
    option_.shape = shape;
  }

  MeshOption run() {
    if (!(option_.why = impossible()).empty()) {
      option_.possible = option_.fits = false;
      return std::move(option_);
    }
    scale();
    save_memory();
    option_.split = split();
    option_.memory_bytes = *std::ranges::max_element(option_.split.memory_bytes) + reserved_;
    option_.fits = option_.split.fits && !too_small_;
    time();
    if (!option_.fits) {
      option_.why = fmt::format("needs {} per worker, {} are there", bytes_text(option_.memory_bytes),
                                bytes_text(question_.machine.memory_bytes));
    }
    return std::move(option_);
  }

 private:
  int chunks() const { return kind_.in_chunks && option_.shape.pipe > 1 ? question_.chunks : 1; }

  StageSplit split() const {
    const auto find = [&] {
      return best_timed_split(pieces_, option_.shape.pipe, option_.micro_batches, kind_, machine_, chunks());
    };
    if (!question_.splits) return find();
    double seconds = 0;  // tells apart questions about other speeds
    for (const auto& piece : pieces_) seconds += piece.forward_s + piece.backward_s;
    const auto key = fmt::format("{} {} {} {} {} {} {} {} {} {}", kind_.name, option_.shape.pipe, option_.shape.tensor,
                                 option_.micro_batches, question_.saving.recompute_every, machine_.state_factor,
                                 machine_.memory_bytes, machine_.latency_s, machine_.bytes_per_s, seconds);
    auto known = question_.splits->find(key);
    if (known == question_.splits->end()) known = question_.splits->emplace(key, find()).first;
    return known->second;
  }

  std::string impossible() const {
    const MeshShape& shape = option_.shape;
    if (shape.data > question_.batch) return fmt::format("{} replicas for a batch of {}", shape.data, question_.batch);
    if (static_cast<std::size_t>(shape.pipe) * chunks() > question_.pieces.size()) {
      return fmt::format("{} parts of a chain of {}", shape.pipe * chunks(), question_.pieces.size());
    }
    bool splits = std::ranges::any_of(question_.tensor_costs, &TensorCost::splittable);
    return shape.tensor > 1 && !splits ? "no piece can be split inside" : "";
  }

  // Pieces as one worker of this mesh computes them, for its share of a micro-batch.
  void scale() {
    const MeshShape& shape = option_.shape;
    int samples = (question_.batch + shape.data - 1) / shape.data;  // of the replica that has most
    option_.micro_batches = std::min(question_.micro_batches, samples);
    double share = static_cast<double>(samples) / option_.micro_batches /
                   (static_cast<double>(question_.batch) / question_.micro_batches);
    auto scaled = [](std::uint64_t bytes, double by) { return static_cast<std::uint64_t>(std::ceil(bytes * by)); };
    for (std::size_t i = 0; i < question_.pieces.size(); ++i) {
      PieceCost piece = question_.pieces[i];
      bool splits = shape.tensor > 1 && question_.tensor_costs[i].splittable;
      double part = splits ? 1.0 / shape.tensor : 1.0;
      double inside =
          splits ? ring_seconds(question_.tensor_costs[i].communicated_bytes * share, shape.tensor, machine_) : 0;
      inside_s_ += inside * option_.micro_batches;
      piece.forward_s = piece.forward_s * share * part + inside / 2;
      piece.backward_s = piece.backward_s * share * part + inside / 2;
      piece.parameter_bytes = scaled(piece.parameter_bytes, part);
      piece.kept_bytes = scaled(piece.kept_bytes, share * part);
      piece.output_bytes = scaled(piece.output_bytes, share);
      pieces_.push_back(std::move(piece));
    }
  }

  // What is held once, however many micro-batches are in flight, is set aside of the memory there is.
  void save_memory() {
    const Saving& saving = question_.saving;
    double state = machine_.state_factor, share = 1.0 / option_.shape.data;
    if (saving.shard == Saving::Shard::optimizer) state = std::min(state, 2 + (state - 2) * share);
    if (saving.shard == Saving::Shard::gradients) state = std::min(state, 1 + (state - 1) * share);
    if (saving.shard == Saving::Shard::parameters && option_.shape.data > 1) {
      state *= share;
      for (const PieceCost& piece : pieces_) reserved_ = std::max(reserved_, piece.parameter_bytes);
    }
    machine_.state_factor = state;
    if (saving.recompute_every > 0) recompute(static_cast<std::size_t>(saving.recompute_every));
    if (machine_.memory_bytes == 0) return;
    too_small_ = reserved_ >= machine_.memory_bytes;
    if (!too_small_) machine_.memory_bytes -= reserved_;
  }
  void recompute(std::size_t every) {
    std::uint64_t largest = 0;
    for (std::size_t first = 0; first < pieces_.size(); first += every) {
      std::uint64_t again = 0;
      std::size_t end = std::min(first + every, pieces_.size());
      for (std::size_t i = first; i < end; ++i) {
        again += pieces_[i].kept_bytes;
        pieces_[i].kept_bytes = 0;
        pieces_[i].backward_s += pieces_[i].forward_s;
      }
      pieces_[first].kept_bytes = pieces_[first == 0 ? 0 : first - 1].output_bytes;
      largest = std::max(largest, again);
    }
    reserved_ += largest;
  }

  void time() {
    const auto& ends = option_.split.ends;
    auto schedule = pipelines::make(kind_.name, option_.shape.pipe, option_.micro_batches, chunks());
    auto costs = costs_of(pieces_, ends, schedule.splits_backward, machine_);
    option_.stages.resize(static_cast<std::size_t>(schedule.stages));
    for (std::size_t part = 0, i = 0; part < ends.size(); ++part) {
      auto& stage = option_.stages[part % option_.stages.size()];
      for (; i < ends[part]; ++i) {
        stage.pieces.push_back(i);
        stage.parameter_bytes.push_back(static_cast<double>(pieces_[i].parameter_bytes));
      }
    }
    auto timing = pipelines::time_of(schedule, costs);
    option_.step_s = timing.makespan_s;
    double longest = 0;
    for (std::size_t k = 0; k < option_.stages.size(); ++k) {
      auto& stage = option_.stages[k];
      when(timing.actions[k], stage);
      const auto& bytes = stage.parameter_bytes;
      double gradients = gradient_seconds(std::accumulate(bytes.begin(), bytes.end(), 0.0));
      longest = std::max(longest, gradients);
      option_.step_s =
          std::max(option_.step_s, gradients_done(stage, gradients, static_cast<double>(stage.pieces.size())));
    }
    explain(timing, longest);
  }

  double gradient_seconds(double bytes) const {
    double once = question_.all_reduce ? question_.all_reduce(bytes, option_.shape.data)
                                       : ring_seconds(bytes, option_.shape.data, machine_);
    // Sharded weights are gathered for forward and again for backward, in place of an all-reduce's second half.
    if (question_.saving.shard == Saving::Shard::parameters) once *= 1.5;
    return kind_.synchronous ? once : once * option_.micro_batches;
  }

  // Of an asynchronous schedule the first backward, for its stages step by themselves.
  void when(const std::vector<pipelines::Timed>& actions, StageWork& stage) const {
    bool seen = false;
    for (const auto& timed : actions) {
      stage.done_s = std::max(stage.done_s, timed.end_s);
      if (timed.action.kind != Action::Kind::backward || (seen && !kind_.synchronous)) continue;
      stage.last_backward_s = timed.begin_s;
      seen = true;
    }
  }

  // The exchange begins with the last micro-batch's backward (asynchronous: with the first's) and ends no sooner than
  // the last piece's share after the stage's last action.
  double gradients_done(const StageWork& stage, double seconds, double pieces) const {
    if (seconds == 0) return 0;
    double last = seconds / pieces / (kind_.synchronous ? 1 : option_.micro_batches);
    return std::max(stage.done_s + last, stage.last_backward_s + seconds);
  }

  void explain(const pipelines::Timing& timing, double gradients) {
    std::string text = fmt::format("stages compute {}", format_seconds(*std::ranges::max_element(timing.busy_s)));
    if (option_.shape.pipe > 1) text += fmt::format(", bubble {:.0f} %", 100 * timing.bubble);
    if (option_.shape.tensor > 1) text += fmt::format(", exchanges inside layers {} in all", format_seconds(inside_s_));
    if (gradients > 0) {
      text += fmt::format(", gradients {}, {} of it not hidden", format_seconds(gradients),
                          format_seconds(option_.step_s - timing.makespan_s));
    }
    option_.why = text;
  }

  const MeshQuestion& question_;
  const pipelines::PipelineKind& kind_;
  Machine machine_;
  MeshOption option_;
  std::vector<PieceCost> pieces_;
  std::uint64_t reserved_ = 0;
  bool too_small_ = false;
  double inside_s_ = 0;  // a step's exchanges inside layers, of all pieces
};

}  // namespace

MeshOption predict_mesh(const MeshQuestion& question, const MeshShape& shape) {
  check(question);
  return Prediction(question, shape).run();
}

std::vector<MeshOption> rank_meshes(const MeshQuestion& question) {
  check(question);
  std::vector<MeshOption> options;
  for (int data = 1; data <= question.workers; ++data) {
    if (question.workers % data != 0) continue;
    for (int pipe = 1; pipe <= question.workers / data; ++pipe) {
      if (question.workers / data % pipe != 0) continue;
      options.push_back(predict_mesh(question, {data, pipe, question.workers / data / pipe}));
    }
  }
  std::ranges::stable_sort(options, [](const MeshOption& a, const MeshOption& b) {
    auto rank = [](const MeshOption& o) { return o.fits ? 0 : o.possible ? 1 : 2; };
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return a.fits ? a.step_s < b.step_s : a.memory_bytes < b.memory_bytes;
  });
  return options;
}

}  // namespace trireme::mesh

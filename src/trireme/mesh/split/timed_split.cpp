// Splits by what their schedule takes when it is played, not by its beat alone.
#include <algorithm>
#include <cmath>

#include "trireme/mesh/split/split_costs.h"

namespace trireme::mesh {

pipelines::Costs costs_of(std::span<const PieceCost> pieces, std::span<const std::size_t> ends, bool splits_backward,
                          const Machine& machine) {
  pipelines::Costs costs;
  for (std::size_t part = 0, i = 0; part < ends.size(); ++part) {
    double forward = 0, backward = 0;
    for (; i < ends[part]; ++i) {
      forward += pieces[i].forward_s;
      backward += pieces[i].backward_s;
    }
    double after = machine.latency_s + static_cast<double>(pieces[i - 1].output_bytes) / machine.bytes_per_s;
    costs.forward.push_back(forward);
    costs.backward.push_back(splits_backward ? backward / 2 : backward);
    costs.weights.push_back(splits_backward ? backward / 2 : 0);
    costs.activation.push_back(after);
    costs.gradient.push_back(part == 0 ? 0 : costs.activation[part - 1]);
  }
  return costs;
}

namespace {

constexpr double kMostActions = 2e6;  // played in a search through all splits: some tenths of a second

// Plays splits and keeps the quickest that fits.
class Trial {
 public:
  Trial(std::span<const PieceCost> pieces, int stages, int micro_batches, const pipelines::PipelineKind& kind,
        const Machine& machine, int chunks)
      : pieces_(pieces),
        machine_(machine),
        costs_(pieces, machine),
        memory_(kind, stages, micro_batches, chunks),
        schedule_(pipelines::make(kind.name, stages, micro_batches, chunks)),
        split_(best_split(pieces, stages, micro_batches, kind, machine, chunks)) {
    split_.step_s = played(split_.ends);
  }

  StageSplit run() {
    if (split_.fits) {
      std::vector<std::size_t> ends;
      few() ? try_all(ends, 0) : climb();
    }
    evaluate();
    return std::move(split_);
  }

 private:
  double played(const std::vector<std::size_t>& ends) const {
    return pipelines::time_of(schedule_, costs_of(pieces_, ends, schedule_.splits_backward, machine_)).makespan_s;
  }
  void attempt(const std::vector<std::size_t>& ends) {
    for (double bytes : stage_bytes(costs_, memory_, ends, schedule_.stages)) {
      if (!costs_.fits(bytes)) return;
    }
    double seconds = played(ends);
    if (seconds >= split_.step_s * (1 - 1e-9)) return;
    split_.ends = ends;
    split_.step_s = seconds;
  }

  bool few() const {
    double actions = 0, splits = 1;
    for (const auto& list : schedule_.actions) actions += static_cast<double>(list.size());
    for (std::size_t cut = 1; cut < split_.ends.size(); ++cut) {
      splits *= static_cast<double>(pieces_.size() - cut) / static_cast<double>(cut);
    }
    return splits * actions <= kMostActions;
  }
  void try_all(std::vector<std::size_t>& ends, std::size_t begin) {
    std::size_t left = split_.ends.size() - ends.size();
    if (left == 1) {
      ends.push_back(pieces_.size());
      attempt(ends);
      ends.pop_back();
      return;
    }
    for (std::size_t end = begin + 1; end + left - 1 <= pieces_.size(); ++end) {
      ends.push_back(end);
      try_all(ends, end);
      ends.pop_back();
    }
  }

  // Moves one cut by a piece, the best of all such moves, for as long as that helps.
  void climb() {
    for (double before = HUGE_VAL; split_.step_s < before;) {
      before = split_.step_s;
      const auto from = split_.ends;
      for (std::size_t part = 0; part + 1 < from.size(); ++part) {
        for (int by : {-1, 1}) {
          auto ends = from;
          ends[part] += by;
          if (ends[part] > (part == 0 ? 0 : ends[part - 1]) && ends[part] < ends[part + 1]) attempt(ends);
        }
      }
    }
  }

  void evaluate() {
    double slowest = 0;
    for (std::size_t part = 0; part < split_.ends.size(); ++part) {
      std::size_t begin = part == 0 ? 0 : split_.ends[part - 1];
      slowest = std::max({slowest, costs_.seconds(begin, split_.ends[part]), costs_.cut(split_.ends[part])});
    }
    split_.slowest_s = schedule_.chunks * slowest;
    split_.memory_bytes.clear();
    for (double bytes : stage_bytes(costs_, memory_, split_.ends, schedule_.stages)) {
      split_.memory_bytes.push_back(static_cast<std::uint64_t>(std::ceil(bytes)));
    }
  }

  std::span<const PieceCost> pieces_;
  const Machine& machine_;
  SplitCosts costs_;
  StageMemory memory_;
  pipelines::Schedule schedule_;
  StageSplit split_;
};

}  // namespace

StageSplit best_timed_split(std::span<const PieceCost> pieces, int stages, int micro_batches,
                            const pipelines::PipelineKind& kind, const Machine& machine, int chunks) {
  return Trial(pieces, stages, micro_batches, kind, machine, kind.in_chunks ? chunks : 1).run();
}

}  // namespace trireme::mesh

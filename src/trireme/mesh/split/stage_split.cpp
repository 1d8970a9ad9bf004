#include "trireme/mesh/split/stage_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/pareto_front.h"
#include "trireme/mesh/split/split_costs.h"

namespace trireme::mesh {
namespace {

// One way to cut the first pieces into parts. Of two ways, one whose slowest part or cut and whose sum of cuts are both
// no larger is never worse, whatever follows: only the others' front is kept.
struct Splitting {
  double slowest = 0, cuts = 0;
  std::size_t begin = 0;  // of its last part
  std::size_t from = 0;   // the way it extends, in the front of `begin`
};

// f[k][j]: the front of the ways to make k parts of the first j pieces. `part_cost(k, begin, end)` is what the k-th
// part adds to the slowest, infinite where it must not be.
template <typename PartCost, typename Value>
std::vector<std::size_t> cheapest(std::size_t pieces, std::size_t parts, const SplitCosts& costs, PartCost part_cost,
                                  Value value) {
  std::vector<std::vector<std::vector<Splitting>>> fronts(parts + 1, std::vector<std::vector<Splitting>>(pieces + 1));
  fronts[0][0].push_back({});
  for (std::size_t k = 1; k <= parts; ++k) {
    for (std::size_t end = k; end + parts - k <= pieces; ++end) {
      for (std::size_t begin = k - 1; begin < end; ++begin) {
        if (fronts[k - 1][begin].empty()) continue;
        double cost = part_cost(k - 1, begin, end);
        if (std::isinf(cost)) continue;
        for (std::size_t at = 0; at < fronts[k - 1][begin].size(); ++at) {
          const Splitting& way = fronts[k - 1][begin][at];
          add_to_front(fronts[k][end], Splitting{std::max(way.slowest, cost), way.cuts + costs.cut(end), begin, at},
                       &Splitting::slowest, &Splitting::cuts);
        }
      }
    }
  }
  const auto& last = fronts[parts][pieces];
  if (last.empty()) return {};
  auto best = std::ranges::min_element(last, {}, value);
  std::vector<std::size_t> ends;
  std::size_t at = best - last.begin();
  for (std::size_t k = parts, end = pieces; k > 0; --k) {
    ends.push_back(end);
    const Splitting& way = fronts[k][end][at];
    end = way.begin;
    at = way.from;
  }
  std::ranges::reverse(ends);
  return ends;
}

class Splitter {
 public:
  Splitter(std::span<const PieceCost> pieces, int stages, int micro_batches, const pipelines::PipelineKind& kind,
           const Machine& machine, int chunks)
      : costs_(pieces, machine), memory_(kind, stages, micro_batches, chunks), stages_(stages), chunks_(chunks) {
    // With equal parts of p seconds the step takes M·v·p + (S − 1)·fill·v·p; the bubble formula says what `fill` is.
    double fill = 0;
    if (kind.synchronous && stages > 1) {
      double bubble = kind.bubble(stages, stages, chunks).value();
      fill = bubble / (1 - bubble) * stages / (stages - 1);
    }
    cuts_ = fill;
    slowest_ = (micro_batches - fill) * chunks;
  }

  StageSplit best() const {
    StageSplit split;
    auto limited = [this](std::size_t part, std::size_t begin, std::size_t end) {
      if (chunks_ > 1) return beat(begin, end);
      return costs_.fits(part_bytes(part, begin, end)) ? beat(begin, end) : HUGE_VAL;
    };
    split.ends = cheapest(costs_.count(), parts(), costs_, limited,
                          [this](const Splitting& way) { return slowest_ * way.slowest + cuts_ * way.cuts; });
    if (!split.ends.empty() && chunks_ > 1 && !fits(split.ends)) {  // chunks of a stage share its memory
      auto found = search_chunks(costs_, memory_, stages_, chunks_, slowest_, cuts_);
      split.ends = found.ends;
      split.exact = found.exact;
    }
    if (split.ends.empty()) {
      split.fits = false;
      split.ends = cheapest(
          costs_.count(), parts(), costs_,
          [this](auto part, auto begin, auto end) { return part_bytes(part, begin, end); },
          [](const Splitting& way) { return way.slowest; });
    }
    evaluate(split);
    return split;
  }

 private:
  std::size_t parts() const { return static_cast<std::size_t>(stages_) * chunks_; }
  double beat(std::size_t begin, std::size_t end) const {
    return std::max(costs_.seconds(begin, end), costs_.cut(end));
  }

  // Alone on its stage; in chunks, of a stage that has only such parts.
  double part_bytes(std::size_t part, std::size_t begin, std::size_t end) const {
    std::vector<double> parameters(chunks_, costs_.parameters(begin, end)), kept(chunks_, costs_.kept(begin, end));
    return memory_.bytes(static_cast<int>(part) % stages_, parameters, kept, costs_.machine().state_factor);
  }
  bool fits(const std::vector<std::size_t>& ends) const {
    return std::ranges::all_of(stage_bytes(costs_, memory_, ends, stages_),
                               [this](double b) { return costs_.fits(b); });
  }

  void evaluate(StageSplit& split) const {
    double slowest = 0, cuts = 0;
    for (std::size_t part = 0; part < split.ends.size(); ++part) {
      slowest = std::max(slowest, beat(part == 0 ? 0 : split.ends[part - 1], split.ends[part]));
      cuts += costs_.cut(split.ends[part]);
    }
    split.slowest_s = chunks_ * slowest;
    split.step_s = slowest_ * slowest + cuts_ * (cuts + costs_.seconds(0, costs_.count()));
    for (double bytes : stage_bytes(costs_, memory_, split.ends, stages_)) {
      split.memory_bytes.push_back(static_cast<std::uint64_t>(std::ceil(bytes)));
    }
  }

  SplitCosts costs_;
  StageMemory memory_;
  int stages_, chunks_;
  double slowest_, cuts_;  // weights in a step's seconds: of the slowest part, of all compute and transfers once
};

}  // namespace

double ring_seconds(double bytes, int workers, const Machine& machine) {
  return 2.0 * (workers - 1) * (machine.latency_s + bytes / workers / machine.bytes_per_s);
}

StageSplit best_split(std::span<const PieceCost> pieces, int stages, int micro_batches,
                      const pipelines::PipelineKind& kind, const Machine& machine, int chunks) {
  if (!kind.in_chunks) chunks = 1;
  if (stages < 1 || micro_batches < 1 || chunks < 1) {
    throw ConfigError(fmt::format("split: {} stages, {} micro-batches and {} chunks; each is at least 1", stages,
                                  micro_batches, chunks));
  }
  if (static_cast<std::size_t>(stages) * chunks > pieces.size()) {
    throw ConfigError(fmt::format("split: {} parts of {} pieces; up to {} {} possible",
                                  static_cast<std::size_t>(stages) * chunks, pieces.size(), pieces.size() / chunks,
                                  chunks == 1 ? "stages are" : fmt::format("stages of {} chunks are", chunks)));
  }
  return Splitter(pieces, stages, micro_batches, kind, machine, chunks).best();
}

}  // namespace trireme::mesh

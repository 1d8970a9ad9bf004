// Chunks of a stage share its memory, so that a part's limit depends on parts far from it: branch and bound.
#include <algorithm>

#include "trireme/base/infinite_time.h"
#include "trireme/mesh/split/split_costs.h"

namespace trireme::mesh {
namespace {

constexpr long kMostTries = 2'000'000;

class ChunkSearching {
 public:
  ChunkSearching(const SplitCosts& costs, const StageMemory& memory, int stages, int chunks, double slowest,
                 double cuts)
      : costs_(costs),
        memory_(memory),
        stages_(stages),
        parts_(static_cast<std::size_t>(stages) * chunks),
        slowest_(slowest),
        cuts_(cuts),
        parameters_(stages, std::vector<double>(chunks, 0)),
        kept_(parameters_) {
    bound_rest();
  }

  ChunkSearch run() {
    extend(0, 0, 0, 0);
    return {best_, tries_ < kMostTries};
  }

 private:
  // rest_[k][i]: no way to make the parts from k on of the pieces from i on has a smaller slowest, or sum of cuts.
  void bound_rest() {
    std::size_t n = costs_.count();
    rest_slowest_.assign(parts_ + 1, std::vector<double>(n + 1, kNever));
    rest_cuts_ = rest_slowest_;
    rest_slowest_[parts_][n] = rest_cuts_[parts_][n] = 0;
    for (std::size_t k = parts_; k-- > 0;) {
      for (std::size_t begin = 0; begin < n; ++begin) {
        for (std::size_t end = begin + 1; end <= n; ++end) {
          double beat = std::max(costs_.seconds(begin, end), costs_.cut(end));
          rest_slowest_[k][begin] = std::min(rest_slowest_[k][begin], std::max(beat, rest_slowest_[k + 1][end]));
          rest_cuts_[k][begin] = std::min(rest_cuts_[k][begin], costs_.cut(end) + rest_cuts_[k + 1][end]);
        }
      }
    }
  }

  void extend(std::size_t part, std::size_t begin, double slowest, double cuts) {
    if (part == parts_) {
      double step = slowest_ * slowest + cuts_ * cuts;
      if (begin < costs_.count() || step >= best_step_) return;
      best_step_ = step;
      best_ = ends_;
      return;
    }
    std::size_t stage = part % stages_, chunk = part / stages_;
    for (std::size_t end = begin + 1; end + (parts_ - part - 1) <= costs_.count(); ++end) {
      if (++tries_ >= kMostTries) return;
      double now_slowest = std::max({slowest, costs_.seconds(begin, end), costs_.cut(end)});
      double now_cuts = cuts + costs_.cut(end);
      double bound = slowest_ * std::max(now_slowest, rest_slowest_[part + 1][end]) +
                     cuts_ * (now_cuts + rest_cuts_[part + 1][end]);
      if (bound >= best_step_) continue;
      parameters_[stage][chunk] = costs_.parameters(begin, end);
      kept_[stage][chunk] = costs_.kept(begin, end);
      double bytes =
          memory_.bytes(static_cast<int>(stage), parameters_[stage], kept_[stage], costs_.machine().state_factor);
      if (costs_.fits(bytes)) {
        ends_.push_back(end);
        extend(part + 1, end, now_slowest, now_cuts);
        ends_.pop_back();
      }
      parameters_[stage][chunk] = kept_[stage][chunk] = 0;
      if (!costs_.fits(bytes)) return;  // a longer part needs more
    }
  }

  const SplitCosts& costs_;
  const StageMemory& memory_;
  std::size_t stages_, parts_;
  double slowest_, cuts_;
  std::vector<std::vector<double>> parameters_, kept_;  // by stage and chunk, of the parts so far
  std::vector<std::vector<double>> rest_slowest_, rest_cuts_;
  std::vector<std::size_t> ends_, best_;
  double best_step_ = kNever;
  long tries_ = 0;
};

}  // namespace

ChunkSearch search_chunks(const SplitCosts& costs, const StageMemory& memory, int stages, int chunks, double slowest,
                          double cuts) {
  return ChunkSearching(costs, memory, stages, chunks, slowest, cuts).run();
}

}  // namespace trireme::mesh

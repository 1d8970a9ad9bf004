// PipeDream's partitioning, from the last piece to the first: A[i][m] is the shortest beat of the pieces from i on, on
// m workers. The first of their stages takes the pieces [i, j) on r of the workers:
//   A[i][m] = min over j and r of max(T(i, j, r), cut(j), A[j][m − r])
// where T(i, j, r) = max(M · compute / r, ring all-reduce over r) and the stage's replicas each hold ⌈m / r⌉
// micro-batches.
#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/infinite_time.h"
#include "trireme/mesh/split/split_costs.h"

namespace trireme::mesh {
namespace {

class Replication {
 public:
  Replication(std::span<const PieceCost> pieces, int workers, int micro_batches, const Machine& machine)
      : costs_(pieces, machine),
        workers_(workers),
        micro_batches_(micro_batches),
        best_(pieces.size() + 1, std::vector<Choice>(workers + 1)) {}

  ReplicatedPlan run() {
    best_[costs_.count()][0].seconds = 0;
    for (std::size_t begin = costs_.count(); begin-- > 0;) {
      for (int workers = 1; workers <= workers_; ++workers) choose(begin, workers);
    }
    ReplicatedPlan plan;
    auto best = std::ranges::min_element(best_[0], {}, &Choice::seconds);
    plan.slowest_s = best->seconds;
    plan.fits = best->seconds < kNever;
    if (!plan.fits) return plan;
    int workers = static_cast<int>(best - best_[0].begin());
    for (std::size_t at = 0; at < costs_.count();) {
      const Choice& choice = best_[at][workers];
      double bytes = memory(at, choice.end, workers, choice.replicas);
      plan.stages.push_back({choice.end, choice.replicas, static_cast<std::uint64_t>(std::ceil(bytes))});
      workers -= choice.replicas;
      at = choice.end;
    }
    return plan;
  }

 private:
  struct Choice {
    double seconds = kNever;
    std::size_t end = 0;  // of the first stage
    int replicas = 0;     // of the first stage
  };

  double memory(std::size_t begin, std::size_t end, int workers, int replicas) const {
    auto share = [](int all, int of) { return (all + of - 1) / of; };
    int in_flight = std::min(share(workers, replicas), share(micro_batches_, replicas));
    return costs_.parameters(begin, end) * costs_.machine().state_factor + in_flight * costs_.kept(begin, end);
  }

  void choose(std::size_t begin, int workers) {
    Choice& best = best_[begin][workers];
    for (std::size_t end = begin + 1; end <= costs_.count(); ++end) {
      for (int replicas = 1; replicas <= workers; ++replicas) {
        double rest = best_[end][workers - replicas].seconds;
        if (rest == kNever || !costs_.fits(memory(begin, end, workers, replicas))) continue;
        double compute = micro_batches_ * costs_.seconds(begin, end) / replicas;
        double reduce = ring_seconds(costs_.parameters(begin, end), replicas, costs_.machine());
        double beat = std::max({compute, reduce, micro_batches_ * costs_.cut(end), rest});
        if (beat < best.seconds) best = {beat, end, replicas};
      }
    }
  }

  SplitCosts costs_;
  int workers_, micro_batches_;
  std::vector<std::vector<Choice>> best_;  // by first piece and workers
};

}  // namespace

ReplicatedPlan best_plan(std::span<const PieceCost> pieces, int workers, int micro_batches, const Machine& machine) {
  if (pieces.empty() || workers < 1 || micro_batches < 1) {
    throw ConfigError("plan: there must be a piece, a worker and a micro-batch at least");
  }
  return Replication(pieces, workers, micro_batches, machine).run();
}

}  // namespace trireme::mesh

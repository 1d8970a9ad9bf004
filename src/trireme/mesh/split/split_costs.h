// What parts of a chain of pieces cost, from sums made once. Private to the splits.
#pragma once
#include <vector>

#include "trireme/mesh/split/stage_split.h"

namespace trireme::mesh {

class SplitCosts {
 public:
  SplitCosts(std::span<const PieceCost> pieces, const Machine& machine) : pieces_(pieces), machine_(machine) {
    for (auto* sums : {&seconds_, &parameters_, &kept_}) sums->assign(pieces.size() + 1, 0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      seconds_[i + 1] = seconds_[i] + pieces[i].forward_s + pieces[i].backward_s;
      parameters_[i + 1] = parameters_[i] + static_cast<double>(pieces[i].parameter_bytes);
      kept_[i + 1] = kept_[i] + static_cast<double>(pieces[i].kept_bytes);
    }
  }
  std::size_t count() const { return pieces_.size(); }
  // Of the pieces [begin, end).
  double seconds(std::size_t begin, std::size_t end) const { return seconds_[end] - seconds_[begin]; }
  double parameters(std::size_t begin, std::size_t end) const { return parameters_[end] - parameters_[begin]; }
  double kept(std::size_t begin, std::size_t end) const { return kept_[end] - kept_[begin]; }
  // There and back over the cut before piece `at`; none at the ends of the chain.
  double cut(std::size_t at) const {
    if (at == 0 || at == pieces_.size()) return 0;
    return 2 * (machine_.latency_s + static_cast<double>(pieces_[at - 1].output_bytes) / machine_.bytes_per_s);
  }
  bool fits(double bytes) const {
    return machine_.memory_bytes == 0 || bytes <= static_cast<double>(machine_.memory_bytes);
  }
  const Machine& machine() const { return machine_; }

 private:
  std::span<const PieceCost> pieces_;
  const Machine& machine_;
  std::vector<double> seconds_, parameters_, kept_;  // prefix sums
};

// What a stage of a schedule holds: the numbers of activations by chunk that it has in flight at once, those only that
// no other exceeds in every chunk.
class StageMemory {
 public:
  StageMemory(const pipelines::PipelineKind& kind, int stages, int micro_batches, int chunks);
  // The bytes of a stage, from its chunks' parameters and kept bytes.
  double bytes(int stage, std::span<const double> parameters, std::span<const double> kept, double state_factor) const;

 private:
  bool versions_;  // weights are kept for each micro-batch in flight
  std::vector<std::vector<std::vector<int>>> in_flight_;
};

// By stage, of a split.
std::vector<double> stage_bytes(const SplitCosts& costs, const StageMemory& memory, std::span<const std::size_t> ends,
                                int stages);

// The fastest split in chunks that fits, found by trying; nothing where none does. `slowest` and `cuts` are the
// weights of the beat (of a part) and of the cuts' sum in the step's seconds.
struct ChunkSearch {
  std::vector<std::size_t> ends;
  bool exact = true;
};
ChunkSearch search_chunks(const SplitCosts& costs, const StageMemory& memory, int stages, int chunks, double slowest,
                          double cuts);

}  // namespace trireme::mesh

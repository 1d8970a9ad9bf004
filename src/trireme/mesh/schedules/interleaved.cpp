// Interleaved 1F1B (Narayanan et al., Megatron-LM, 2021). S stages of v chunks each, M micro-batches.
// Micro-batches go in groups of S: all stages run the forwards of a group through chunk 0, then through chunk 1, and so
// on, and the backwards of a group from the last chunk to the first. A stage runs the next forward while it holds no
// more activations than Megatron's warm-up, 2(S − 1 − s) + (v − 1)S, and the forward can run; else the next backward.
// Time v(M + (S − 1)/v)(f + b) for chunks that take f and b: a share (S − 1)/(vM + S − 1) is bubble, where S divides M.
// Otherwise the last group is smaller; a stage takes in more where no stage could go on else.
// Memory: 2(S − 1 − s) + (v − 1)S + 1 activations of a chunk where S divides M, at most vM.
#include <algorithm>

#include "trireme/mesh/schedules/kinds.h"
#include "trireme/mesh/schedules/lists.h"

namespace trireme::pipelines {
namespace {

int megatron_holds(int stages, int chunks, int stage) { return 2 * (stages - 1 - stage) + (chunks - 1) * stages + 1; }

// All stages in lock-step, one forward or one backward of a chunk at a time.
class LockStep {
 public:
  LockStep(int stages, int micro_batches, int chunks)
      : stages_(stages),
        parts_(stages * chunks),
        stage_(stages),
        forwards_(parts_ * micro_batches, kNever),
        backwards_(parts_ * micro_batches, kNever),
        micro_batches_(micro_batches),
        patient_(micro_batches % stages == 0) {
    for (int first = 0; first < micro_batches; first += stages) {
      int end = std::min(first + stages, micro_batches);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        for (int m = first; m < end; ++m) {
          forward_order_.push_back(forward_of(m, chunk));
          backward_order_.push_back(backward_of(m, chunks - 1 - chunk));
        }
      }
    }
    for (int stage = 0; stage < stages; ++stage) stage_[stage].may_hold = megatron_holds(stages, chunks, stage);
  }

  std::vector<std::vector<Action>> run() {
    for (int now = 1;; ++now) {
      bool ended = true, moved = false;
      for (int stage = 0; stage < stages_; ++stage) {
        moved |= act(stage, now, false);
        ended &= stage_[stage].backwards == forward_order_.size();
      }
      if (ended) break;
      for (int stage = 0; stage < stages_ && !moved; ++stage) moved = act(stage, now, true);
    }
    std::vector<std::vector<Action>> lists;
    for (Stage& stage : stage_) lists.push_back(std::move(stage.computed));
    return lists;
  }

 private:
  static constexpr int kNever = 1 << 30;
  struct Stage {
    std::size_t forwards = 0, backwards = 0;  // done
    int may_hold = 0;
    std::vector<Action> computed;
  };

  std::size_t index(const Action& action, int stage, int parts_on = 0) const {
    return static_cast<std::size_t>(action.chunk * stages_ + stage + parts_on) * micro_batches_ + action.micro_batch;
  }
  bool last(const Action& action, int stage) const { return action.chunk * stages_ + stage + 1 == parts_; }

  bool act(int stage, int now, bool beyond_memory) {
    Stage& mine = stage_[stage];
    bool room = static_cast<int>(mine.forwards - mine.backwards) < mine.may_hold || beyond_memory;
    bool may_go_on = mine.forwards < forward_order_.size() && room;
    if (may_go_on && go_on(mine, stage, now)) return true;
    return !(may_go_on && patient_) && mine.backwards < mine.forwards && go_back(mine, stage, now);
  }

  bool go_on(Stage& mine, int stage, int now) {
    const Action& next = forward_order_[mine.forwards];
    bool first = next.chunk == 0 && stage == 0;
    if (!first && forwards_[index(next, stage, -1)] >= now) return false;
    forwards_[index(next, stage)] = now;
    ++mine.forwards;
    mine.computed.push_back(next);
    return true;
  }

  bool go_back(Stage& mine, int stage, int now) {
    const Action& next = backward_order_[mine.backwards];
    int ready = last(next, stage) ? forwards_[index(next, stage)] : backwards_[index(next, stage, 1)];
    if (ready >= now || forwards_[index(next, stage)] >= now) return false;
    backwards_[index(next, stage)] = now;
    ++mine.backwards;
    mine.computed.push_back(next);
    return true;
  }

  int stages_, parts_;
  std::vector<Stage> stage_;
  std::vector<int> forwards_, backwards_;  // when done, by part and micro-batch
  int micro_batches_;
  bool patient_;  // waits for a forward that will come, rather than run a backward early
  std::vector<Action> forward_order_, backward_order_;  // the same on every stage
};

}  // namespace

Schedule make_interleaved(int stages, int micro_batches, int chunks) {
  Schedule schedule;
  schedule.stages = stages;
  auto computed = LockStep(stages, micro_batches, chunks).run();
  for (int stage = 0; stage < stages; ++stage) {
    schedule.actions.push_back(with_messages(computed[stage], stages, stage, chunks));
  }
  receive_in_order(schedule);
  return schedule;
}

int held_by_interleaved(int stages, int micro_batches, int chunks, int stage) {
  return std::min(micro_batches * chunks, megatron_holds(stages, chunks, stage));
}

std::optional<double> bubble_of_interleaved(int stages, int micro_batches, int chunks) {
  if (micro_batches % stages != 0) return std::nullopt;
  return (stages - 1.0) / (static_cast<double>(chunks) * micro_batches + stages - 1.0);
}

}  // namespace trireme::pipelines

#include "trireme/collective/cost/round_work.h"

namespace trireme {

const RoundWork& RoundReader::read(const Schedule& schedule, int rank, int k) {
  round_.clear();
  schedule.fill(k, round_);
  work_.sent.clear();
  work_.received.clear();
  work_.copied = work_.folded = work_.reduced = work_.loaded = work_.stored = 0;
  work_.shared = false;
  work_.only_stages = true;
  for (const Step& step : round_) add(step, rank);
  return work_;
}

void RoundReader::add(const Step& step, int rank) {
  std::uint64_t from = step.from.count * element_;
  std::uint64_t to = step.to.count * element_;
  switch (step.kind) {
    case StepKind::copy:
      if (step.from.buffer == Buffer::input && step.to.buffer == Buffer::output) break;
      work_.copied += to;
      work_.loaded += to;
      work_.stored += to;
      break;
    case StepKind::reduce:
      work_.folded += to;
      work_.loaded += 2 * to;
      work_.stored += to;
      break;
    case StepKind::combine:
      work_.folded += to * (call_.ranks - 1);
      work_.loaded += to * call_.ranks;
      work_.stored += to;
      break;
    case StepKind::send:
      work_.sent.add(step.peer, from);
      break;
    case StepKind::recv:
      work_.received.add(step.peer, to);
      break;
    case StepKind::recv_reduce:
      work_.received.add(step.peer, to);
      work_.reduced += to;
      break;
    case StepKind::read:
      work_.loaded += to;
      work_.stored += to;
      if (step.peer == rank) break;
      work_.shared = true;
      work_.only_stages &= step.from.buffer == Buffer::stage;
      work_.received.add(step.peer, to);
      break;
    case StepKind::reduce_from:
      reduce_from(step, rank);
      break;
  }
}

void RoundReader::reduce_from(const Step& step, int rank) {
  std::uint64_t bytes = step.to.count * element_;
  bool everyone = step.peer == kEveryone;
  work_.loaded += bytes * call_.ranks;
  work_.stored += everyone ? bytes * call_.ranks : bytes;
  work_.reduced += bytes * (call_.ranks - 1);
  work_.shared |= call_.ranks > 1;
  work_.only_stages &= step.from.buffer == Buffer::stage && step.peer == rank;
  for (int peer = 0; peer < call_.ranks; ++peer) {
    if (peer == rank) continue;
    work_.received.add(peer, bytes);
    if (everyone || peer == step.peer) work_.sent.add(peer, bytes);
  }
}

}  // namespace trireme

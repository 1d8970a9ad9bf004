#include <algorithm>
#include <utility>

#include "trireme/collective/cost.h"
#include "trireme/collective/round_work.h"

namespace trireme {
namespace {

// Seconds at which a rank's messages in one direction have ended.
double last_end(const PerPeer& messages, double ready, const std::vector<double>& others, const LinkModel& model,
                std::vector<std::pair<double, double>>& line) {
  double end = ready;
  line.clear();
  for (int peer : messages.peers()) {
    double start = std::max(ready, others[peer]);
    double seconds = model.message(static_cast<double>(messages[peer]));
    if (model.wires == Wires::many) {
      end = std::max(end, start + seconds);
    } else {
      line.emplace_back(start, seconds);
    }
  }
  std::sort(line.begin(), line.end());
  for (auto [start, seconds] : line) end = std::max(end, start) + seconds;
  return end;
}

double predict_messages(RoundReader& reader, const std::vector<Schedule>& schedules, const LinkModel& model) {
  int ranks = static_cast<int>(schedules.size());
  std::vector<double> ready(ranks), end(ranks);
  std::vector<std::pair<double, double>> line;
  for (int k = 0; k < schedules[0].rounds; ++k) {
    for (int rank = 0; rank < ranks; ++rank) {
      const RoundWork& work = reader.read(schedules[rank], rank, k);
      ready[rank] =
          end[rank] + static_cast<double>(work.copied) * model.copy + static_cast<double>(work.folded) * model.gamma;
    }
    // Read again rather than keep: a round of ten thousand ranks need not fit in memory.
    for (int rank = 0; rank < ranks; ++rank) {
      const RoundWork& work = reader.read(schedules[rank], rank, k);
      double sent = last_end(work.sent, ready[rank], ready, model, line);
      double received = last_end(work.received, ready[rank], ready, model, line);
      end[rank] = std::max(sent, received) + static_cast<double>(work.reduced) * model.gamma;
    }
  }
  return *std::max_element(end.begin(), end.end());
}

double predict_shared(RoundReader& reader, const std::vector<Schedule>& schedules, const LinkModel& model) {
  int ranks = static_cast<int>(schedules.size());
  double seconds = 0;
  bool only_stages = true;
  for (int k = 0; k < schedules[0].rounds; ++k) {
    bool shared = false;
    std::uint64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RoundWork& work = reader.read(schedules[rank], rank, k);
      shared |= work.shared;
      only_stages &= work.only_stages;
      most = std::max(most, work.loaded + work.stored);
    }
    if (shared) seconds += model.sync;
    if (most > 0) seconds += model.memory(static_cast<double>(most));
  }
  return only_stages ? seconds : seconds + model.sync;
}

}  // namespace

double predict(const Algorithm& algorithm, const Call& shape, DType type, const LinkModel& model) {
  if (algorithm.shared && shape.what == Collective::barrier) return shape.ranks > 1 ? model.sync : 0;
  RoundReader reader(algorithm, shape, size_of(type));
  std::vector<Schedule> schedules;
  schedules.reserve(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) schedules.push_back(reader.schedule(rank));
  return algorithm.shared ? predict_shared(reader, schedules, model) : predict_messages(reader, schedules, model);
}

}  // namespace trireme

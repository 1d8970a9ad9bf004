#include "trireme/grad/timings.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "trireme/base/clock.h"
#include "trireme/sync/exchange/rehearsal.h"

namespace trireme::grad {
namespace {

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& time) { return time.tv_sec + 1e-6 * time.tv_usec; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The least of several, in seconds.
template <typename Body>
double quickest(int times, Body&& body) {
  double least = INFINITY;
  for (int i = 0; i < times; ++i) {
    double begin = now_seconds();
    body();
    least = std::min(least, now_seconds() - begin);
  }
  return least;
}

}  // namespace

double pack_s_per_byte(std::size_t most) {
  most = sync::Rehearsal::longest(most);
  const auto source = std::make_unique<char[]>(most), target = std::make_unique<char[]>(most);
  return quickest(2, [&] { std::memcpy(target.get(), source.get(), most); }) / static_cast<double>(most);
}

sync::BucketCosts measure_costs(Communicator& comm, sync::Turn turn, bool spare_core, std::size_t most,
                                Rehearse rehearse) {
  most = sync::Rehearsal::longest(most);
  auto memory = comm.allocate<float>(most / sizeof(float));
  std::memset(memory.get(), 0, most);
  auto all_reduce = [&](std::size_t bytes) -> std::function<void()> {
    View data(memory.get(), bytes / sizeof(float), DType::f32);
    return [&comm, turn, data] {
      turn == sync::Turn::in_line ? comm.all_reduce(data) : comm.async().all_reduce(data).wait();
    };
  };
  sync::RehearsedSeconds seconds;
  double wall = 0, processor = 0;
  for (std::size_t bytes = sync::Rehearsal::kFirst; bytes <= most; bytes *= sync::Rehearsal::kTimes) {
    auto exchange = rehearse ? rehearse(bytes) : nullptr;
    if (!exchange) exchange = all_reduce(bytes);
    exchange();
    double before = processor_seconds(), begin = now_seconds();
    seconds.add(bytes, quickest(3, exchange));
    wall += now_seconds() - begin;
    processor += processor_seconds() - before;
  }
  double share = wall > 0 ? std::min(1.0, processor / wall) : 1.0;
  return {std::move(seconds), turn == sync::Turn::in_line ? 1.0 : spare_core ? 0.0 : share, pack_s_per_byte(most)};
}

void Timings::end_step(std::int64_t step) {
  if (step < kWarm || observed_.empty()) return;
  for (std::size_t p = 0; p < ready_.size(); ++p) {
    auto& times = ready_[p];
    if (times.size() == kCount) times.erase(times.begin());
    times.push_back(static_cast<float>(last_[p]));
  }
  constexpr double kNewest = 0.1;
  double span = last_[observed_.back()];
  span_ = span_ == 0 ? span : (1 - kNewest) * span_ + kNewest * span;
}

bool Timings::due(std::int64_t step) const {
  if (planned_at_ < 0) return step + 1 >= kWarm + kCount;
  constexpr std::int64_t kSettle = 50;
  constexpr double kDrift = 1.33;
  if (step - planned_at_ < kSettle) return false;
  return span_ > planned_span_ * kDrift || span_ * kDrift < planned_span_;
}

void Timings::planned(std::int64_t step) {
  planned_at_ = step;
  planned_span_ = span_;
}

std::vector<float> Timings::medians() const {
  std::vector<float> result;
  for (auto times : ready_) {
    if (times.empty()) {
      result.push_back(0);
      continue;
    }
    std::ranges::nth_element(times, times.begin() + times.size() / 2);
    result.push_back(times[times.size() / 2]);
  }
  return result;
}

}  // namespace trireme::grad

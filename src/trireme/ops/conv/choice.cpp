#include "trireme/ops/conv/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/ops/aligned.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/peak.h"

namespace trireme::ops {
namespace {

// Of the peak in products, and of memory beside the peak: as on the machines that were looked at, 20 to 25 GB/s of a
// core with 180 to 290 GFLOP/s.
constexpr double kReached = 0.92;
constexpr double kBytesPerFlop = 0.08;
constexpr double kCall = 3e-6;  // seconds of a call that does nothing

double peak() {
  static const double measured = measure_peak(0.005);
  return measured;
}

double predict(const OpCost& cost) {
  const double compute = 2 * cost.slots / (kReached * peak() * threads());
  return kCall + compute + cost.bytes / (kBytesPerFlop * peak());
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Tensors of a shape, with numbers that are neither zero nor denormal.
struct OwnTensors {
  explicit OwnTensors(const ConvShape& shape) {
    const auto fill = [](AlignedFloats& memory, int64_t count) {
      memory.grow(count);
      for (int64_t i = 0; i < count; ++i) memory.data()[i] = static_cast<float>(i % 17) * 0.125f - 1.03f;
      return memory.data();
    };
    tensors.input = fill(input, shape.input_size());
    tensors.weight = fill(weight, shape.weight_size());
    tensors.output = fill(output, shape.output_size());
  }
  AlignedFloats input, weight, output;
  ConvTensors tensors;
};

void sort_by_time(std::vector<ConvPick>& picks) {
  std::ranges::stable_sort(picks, {}, [](const ConvPick& it) { return it.measured > 0 ? it.measured : INFINITY; });
}

}  // namespace

std::vector<ConvPick> guess_conv(const ConvShape& shape, Pass pass, int64_t limit) {
  const ConvAlgorithm* const reference = conv_algorithms().front();
  std::vector<ConvPick> picks;
  for (const ConvAlgorithm* algorithm : conv_algorithms()) {
    if (algorithm == reference || !algorithm->takes(shape, pass)) continue;
    const OpCost cost = algorithm->cost(shape, pass);
    if (cost.workspace <= limit) picks.push_back({.algorithm = algorithm, .predicted = predict(cost)});
  }
  if (picks.empty()) picks.push_back({.algorithm = reference, .predicted = predict(reference->cost(shape, pass))});
  std::ranges::stable_sort(picks, {}, &ConvPick::predicted);
  return picks;
}

ConvChooser::ConvChooser(std::filesystem::path file) : file_(std::move(file)) {
  if (file_.empty()) return;
  try {
    known_.load(file_);
  } catch (const Error& error) {
    note_ = fmt::format("{}; operators are guessed", error.what());
  }
}

ConvPick ConvChooser::pick(const ConvShape& shape, Pass pass, int64_t limit) const {
  std::vector<ConvPick> picks = guess_conv(shape, pass, limit);
  if (const auto times = known_.find({shape, pass, threads(), instruction_set()})) {
    for (ConvPick& it : picks) {
      const auto at = times->find(it.algorithm->name());
      if (at != times->end()) it.measured = at->second;
    }
    sort_by_time(picks);
  }
  return picks.front();
}

std::vector<ConvPick> ConvChooser::measure(const ConvShape& shape, Pass pass, int64_t limit, double seconds) {
  constexpr int kRounds = 7;
  constexpr double kHopeless = 3;  // times the fastest: measured no more
  check(shape);
  std::vector<ConvPick> picks = guess_conv(shape, pass, limit);
  const OwnTensors own(shape);
  AlignedFloats memory;
  const double begin = seconds_now();
  double least = INFINITY;
  for (int round = 0; round < kRounds && (round < 2 || seconds_now() - begin < seconds); ++round) {
    for (ConvPick& it : picks) {
      if (round > 0 && it.measured > kHopeless * least) continue;
      const int64_t size = it.algorithm->cost(shape, pass).workspace;
      memory.grow((size + 3) / 4);
      const double started = seconds_now();
      it.algorithm->run(shape, pass, own.tensors,
                        {reinterpret_cast<std::byte*>(memory.data()), static_cast<std::size_t>(size)});
      const double time = seconds_now() - started;
      it.measured = round < 2 ? time : std::min(it.measured, time);  // the first touches memory
      least = std::min(least, time);
    }
  }
  sort_by_time(picks);
  ConvTimes times;
  for (const ConvPick& it : picks) times[std::string(it.algorithm->name())] = it.measured;
  known_.put({shape, pass, threads(), instruction_set()}, std::move(times));
  return picks;
}

void ConvChooser::save() const {
  if (!file_.empty()) known_.save(file_);
}

}  // namespace trireme::ops

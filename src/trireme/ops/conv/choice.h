// Which algorithm a convolution's pass takes: the fastest of those measured for this shape on this machine, else a
// guess from what each counts, both within a limit of workspace.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/ops/conv/conv.h"
#include "trireme/ops/conv/measurements.h"

namespace trireme::ops {

inline constexpr int64_t kNoLimit = INT64_MAX;  // bytes

struct ConvPick {
  const ConvAlgorithm* algorithm = nullptr;
  double predicted = 0;  // seconds
  double measured = 0;   // seconds; 0 where it was not measured
};

// Those that take the pass within the limit, the likely fastest first, predicted for the calling thread's team. The
// reference, which needs no workspace, comes only where nothing else fits.
std::vector<ConvPick> guess_conv(const ConvShape& shape, Pass pass, int64_t limit = kNoLimit);

// May be used by several threads at a time.
class ConvChooser {
 public:
  // Knows what the file has; empty: nothing is read or kept.
  explicit ConvChooser(std::filesystem::path file = {});
  // One line where the file could not be read; choices are guesses then.
  const std::string& note() const { return note_; }

  ConvPick pick(const ConvShape& shape, Pass pass, int64_t limit = kNoLimit) const;
  // Times the candidates in turns, each a few times, for about so long, on tensors of its own, on the calling thread's
  // team, and keeps the results. The fastest first.
  std::vector<ConvPick> measure(const ConvShape& shape, Pass pass, int64_t limit = kNoLimit, double seconds = 0.1);
  // Throws Error, one line, where the file cannot be written.
  void save() const;

 private:
  std::filesystem::path file_;
  std::string note_;
  ConvMeasurements known_;
};

}  // namespace trireme::ops

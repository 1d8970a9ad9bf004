// Which elements of a flat gradient a worker pushes where some tensors are tables of which a step touches few rows, as
// embeddings are: all of the other tensors, and of a table the rows that are not all zeros.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/ps/job.h"
#include "trireme/sync/report.h"

namespace trireme::sync {

class TouchedRows {
 public:
  // `tables` are names of `tensors`.
  TouchedRows(const std::vector<ps::Tensor>& tensors, std::span<const std::string> tables);

  // Looks at a gradient: fills segments(), counts, and writes their values to `packed` one after the other; returns how
  // many. A pass over the gradient, and a copy of what is pushed.
  std::size_t pack(std::span<const float> gradient, float* packed);
  // In order, none next to another.
  std::span<const ps::Segment> segments() const { return segments_; }
  // What a push of them took on its way.
  void pushed(std::uint64_t bytes) { report_.bytes_after += bytes; }

  const SparsePushes& report() const { return report_; }

 private:
  static constexpr std::size_t kWhole = SIZE_MAX;
  struct Part {
    std::uint64_t offset = 0, count = 0;
    std::uint64_t rows = 1;
    std::size_t table = kWhole;  // its number in the report
  };
  void add(std::uint64_t offset, std::uint64_t count);

  std::vector<Part> parts_;
  std::vector<float> zeros_;  // as many as the widest row has
  std::vector<ps::Segment> segments_;
  SparsePushes report_;
};

}  // namespace trireme::sync

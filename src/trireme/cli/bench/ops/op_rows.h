// The rows of `bench ops`: contenders take turns on one shape and pass.
#pragma once
#include <string>
#include <vector>

#include "trireme/cli/bench/ops/op_family.h"

namespace trireme::bench {

struct OpRow {
  std::string implementation, peer;
  std::string version = {};     // the peer's; ours has none
  int64_t workspace = 0;        // bytes
  std::vector<double> seconds;  // of a call, by round
  double p50() const;
};

struct OpRival {
  std::string peer, version;
  Contender contender;
};
// Each has its turn in every round, after one that is not counted: it touches the memory. Short calls are repeated
// within a turn.
std::vector<OpRow> measure_rivals(const std::vector<OpRival>& rivals, int rounds);

// What speeds are compared with.
struct OpPeaks {
  double flops = 0;  // a second
  double bytes = 0;
};

class OpRowPrinter {
 public:
  OpRowPrinter(const OpPeaks& peaks, bool json) : peaks_(peaks), json_(json) {}
  void header(int rounds) const;
  void row(const OpFamily& family, const OpPass& pass, const OpShape& shape, int layers, const OpRow& row) const;

 private:
  OpPeaks peaks_;
  bool json_;
};

}  // namespace trireme::bench

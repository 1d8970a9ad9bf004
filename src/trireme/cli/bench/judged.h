// Predictions held against what was measured, and how good they were on the whole.
#pragma once
#include <string>
#include <vector>

namespace trireme::bench {

// One thing that was predicted and then measured several times.
struct Judged {
  std::string group, what;  // "shm", "all-reduce ring 2K"
  double predicted_s = 0;
  std::vector<double> measured_s;  // of each round

  double measured() const;  // the median
  double error() const;     // |predicted − measured| / measured
  // How far one round is from the median of the others, relative: the median over rounds. No prediction can be
  // expected to be nearer.
  double spread() const;
};

struct Verdict {
  std::size_t count = 0;
  double median_error = 0, p95_error = 0;
  double median_spread = 0, p95_spread = 0;
  double kendall = 0;  // rank correlation (tau-b) of predicted and measured
};
Verdict verdict_of(const std::vector<Judged>& all);

// Kendall's tau-b of pairs: 1 where both orders agree, −1 where they are opposite; 1 for fewer than two.
double kendall(const std::vector<double>& a, const std::vector<double>& b);
// The same of pairs whose `b` differ by more than `apart`, relative to the larger, with the share of pairs that do.
struct Apart {
  double kendall = 1, share = 0;
};
Apart kendall_apart(const std::vector<double>& a, const std::vector<double>& b, double apart);
// By linear interpolation between the nearest; 0 of nothing.
double quantile(std::vector<double> values, double share);

}  // namespace trireme::bench

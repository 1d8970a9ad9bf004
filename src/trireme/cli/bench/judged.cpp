#include "trireme/cli/bench/judged.h"

#include <algorithm>
#include <cmath>

#include "trireme/base/quantile.h"
#include "trireme/cli/bench/numbers.h"

namespace trireme::bench {

double Judged::measured() const { return median(measured_s); }

double Judged::error() const { return std::abs(predicted_s - measured()) / measured(); }

double Judged::spread() const {
  if (measured_s.size() < 2) return 0;
  std::vector<double> off;
  for (std::size_t i = 0; i < measured_s.size(); ++i) {
    auto others = measured_s;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    off.push_back(std::abs(measured_s[i] - median(others)) / measured_s[i]);
  }
  return median(off);
}

Verdict verdict_of(const std::vector<Judged>& all) {
  std::vector<double> errors, spreads, predicted, measured;
  for (const auto& one : all) {
    errors.push_back(one.error());
    spreads.push_back(one.spread());
    predicted.push_back(one.predicted_s);
    measured.push_back(one.measured());
  }
  return {all.size(),
          quantile(errors, 0.5),
          quantile(errors, 0.95),
          quantile(spreads, 0.5),
          quantile(spreads, 0.95),
          kendall(predicted, measured)};
}

double kendall(const std::vector<double>& a, const std::vector<double>& b) { return kendall_apart(a, b, 0).kendall; }

Apart kendall_apart(const std::vector<double>& a, const std::vector<double>& b, double apart) {
  double agree = 0, in_a = 0, in_b = 0;  // pairs: agreeing less opposed; not tied in a; not tied in b
  double looked_at = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double da = a[i] - a[j], db = b[i] - b[j];
      ++all;
      if (std::abs(db) < apart * std::max(std::abs(b[i]), std::abs(b[j]))) continue;
      ++looked_at;
      if (da != 0) ++in_a;
      if (db != 0) ++in_b;
      if (da * db > 0) ++agree;
      if (da * db < 0) --agree;
    }
  }
  return {in_a > 0 && in_b > 0 ? agree / std::sqrt(in_a * in_b) : 1, all > 0 ? looked_at / all : 0};
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return quantile_of_sorted(values, share);
}

}  // namespace trireme::bench
